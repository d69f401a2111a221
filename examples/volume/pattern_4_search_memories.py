"""Memories whose text matches. Only the import differs from the published pattern."""

from rlm import Interpreter as ModalInterpreter

with ModalInterpreter(timeout=120, volume_name='rlm-volume-dspy') as interp:
    result = interp.execute('''
import os, re

query = 'error'
memory_dir = '/data/memory'
matches = []
if os.path.exists(memory_dir):
    for fname in os.listdir(memory_dir):
        with open(os.path.join(memory_dir, fname)) as f:
            if re.search(query, f.read(), re.IGNORECASE):
                matches.append(fname.replace('.json', ''))
SUBMIT(matches=matches, query=query)
''')
    print(f"Keys matching: {result.matches}")
