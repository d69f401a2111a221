"""A memory is removed. Only the import differs from the published pattern."""

from rlm import Interpreter as ModalInterpreter

with ModalInterpreter(timeout=120, volume_name='rlm-volume-dspy') as interp:
    interp.execute('''
import os
path = '/data/memory/old_result.json'
if os.path.exists(path):
    os.remove(path)
    print('Deleted')
else:
    print('Not found')
''')
