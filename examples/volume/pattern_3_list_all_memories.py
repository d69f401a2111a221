"""What the memory holds, with sizes. Only the import differs from the published pattern."""

from rlm import Interpreter as ModalInterpreter

with ModalInterpreter(timeout=120, volume_name='rlm-volume-dspy') as interp:
    result = interp.execute('''
import os

memory_dir = '/data/memory'
if not os.path.exists(memory_dir):
    SUBMIT(memories=[])
else:
    memories = []
    for fname in sorted(os.listdir(memory_dir)):
        fpath = os.path.join(memory_dir, fname)
        stat = os.stat(fpath)
        memories.append({'key': fname.replace('.json', ''), 'size_bytes': stat.st_size})
    SUBMIT(memories=memories)
''')
    for m in result.memories:
        print(f"  {m['key']}: {m['size_bytes']} bytes")
