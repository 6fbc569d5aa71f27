// Validates docker/kubernetes/*.yaml against the schemas of the Kubernetes API (npm: kubernetes-models).
// Usage: node manifests.mjs FOLDER…, with NODE_PATH or a node_modules folder that has both packages.
// Control: each manifest with one value of the wrong type must be refused.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const { parseAllDocuments } = require('yaml');
const kinds = require('kubernetes-models/v1');

let failed = 0;
const check = (ok, text) => {
  console.log(`  ${ok ? 'ok    ' : 'FAILED'} ${text}`);
  failed += ok ? 0 : 1;
};
const error = (object) => {
  try {
    new kinds[object.kind](object).validate();
    return '';
  } catch (problem) {
    return problem.message;
  }
};
const spoilt = {
  Pod: (pod) => (pod.spec.containers[0].securityContext.capabilities.add = 5),
  ConfigMap: (map) => (map.data['airlock.yaml'] = { port: 8080 }),
};

let count = 0;
for (const folder of process.argv.slice(2)) {
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.yaml'))) {
    for (const document of parseAllDocuments(readFileSync(`${folder}/${name}`, 'utf8'))) {
      const object = document.toJS();
      const label = `${name}: ${object.kind}`;
      count += 1;
      check(document.errors.length === 0 && error(object) === '', `${label} ${error(object) || 'is valid'}`);
      spoilt[object.kind](object);
      check(error(object) !== '', `${label}, control: ${error(object)}`);
    }
  }
}
check(count > 0, `${count} objects`);
process.exit(failed ? 1 : 0);
