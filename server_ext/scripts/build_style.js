// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Writes the style sheets as the panel ships them: without comments and spaces, which a
 * browser would fetch with the script before it shows anything.
 */
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = join(dirname(fileURLToPath(import.meta.url)), '..');
const from = join(here, 'style');
const to = join(here, 'lib', 'style');

function short(css) {
  return css
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/\s*([{};,])\s*/g, '$1')
    .replace(/: /g, ':')
    .replace(/\( /g, '(')
    .replace(/ \)/g, ')')
    .replace(/;}/g, '}')
    .trim();
}

await mkdir(to, { recursive: true });
for (const name of await readdir(from)) {
  const text = await readFile(join(from, name), 'utf8');
  const isSheet = name.endsWith('.css');
  await writeFile(join(to, name), isSheet ? short(text) : text);
}
