"""Files below /data, opened as any other. Only the import differs from the published pattern."""

from rlm import Interpreter as ModalInterpreter

with ModalInterpreter(timeout=120, volume_name='rlm-volume-dspy') as interp:
    # Write directly to /data/
    interp.execute('''
import json, os
os.makedirs('/data/memory', exist_ok=True)
with open('/data/memory/config.json', 'w') as f:
    json.dump({'timeout': 300, 'retries': 3}, f)
print('Config saved')
''')

    # Read back
    result = interp.execute('''
import json
with open('/data/memory/config.json') as f:
    config = json.load(f)
SUBMIT(config=config)
''')
    print(result.config)  # {'timeout': 300, 'retries': 3}
