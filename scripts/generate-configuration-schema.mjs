// Writes docs/heraut.schema.json, for editors, from the schema that configuration files are read with; with --check it
// only says whether the file is up to date.
import { loadTypeScript, writeOrCheck } from './generated.mjs';

const { editorSchema } = await loadTypeScript('src/configuration-file/editor-schema.ts');
await writeOrCheck('docs/heraut.schema.json', JSON.stringify(editorSchema()), {
  source: 'src/configuration-file',
  command: 'docs:schema',
});
