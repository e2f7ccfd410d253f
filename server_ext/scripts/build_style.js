// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Writes the style sheets as the panel ships them: without comments and spaces, which a
 * browser would fetch with the script before it shows anything. Of the module that
 * imports them becomes one that adds them to the page by itself: what loaders of style
 * sheets bring along is larger than the sheets.
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

const IMPORT = /^import '\.\/(.+\.css)';$/gm;

await mkdir(to, { recursive: true });
const sheets = new Map();
for (const name of (await readdir(from)).filter(name =>
  name.endsWith('.css')
)) {
  sheets.set(name, short(await readFile(join(from, name), 'utf8')));
  await writeFile(join(to, name), sheets.get(name));
}
const index = await readFile(join(from, 'index.js'), 'utf8');
const named = [...index.matchAll(IMPORT)].map(([, name]) => sheets.get(name));
await writeFile(
  join(to, 'index.js'),
  `const sheet = document.createElement('style');
sheet.textContent = ${JSON.stringify(named.join(''))};
document.head.append(sheet);
`
);
