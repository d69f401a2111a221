"""A value is stored by one cell and recalled by the next. Only the import differs from the published pattern."""

from rlm import Interpreter as ModalInterpreter

with ModalInterpreter(timeout=120, volume_name='rlm-volume-dspy') as interp:
    # Store a value
    interp.execute('''
import json, os
os.makedirs('/data/memory', exist_ok=True)
data = {'value': 'my-important-result', 'created': '2024-01-15'}
save_to_volume('memory/analysis.json', json.dumps(data))
print('Stored successfully')
''')

    # Recall the value
    result = interp.execute('''
import json
raw = load_from_volume('memory/analysis.json')
data = json.loads(raw)
print(f"Value: {data['value']}")
''')
    print(result)
