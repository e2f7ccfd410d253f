// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Bundles src/page for pages without JupyterLab: one script that puts its exports into
 * `FleetTimeline`, and its style sheet. The Hub includes both into its pages, so that a
 * page needs nobody to serve them; hence a plain script, which can be inline.
 *
 * The result is kept in the repository, because a Hub is installed without Node. Its
 * first line names the sources that it was built from, and a test compares them.
 */
import { createHash } from 'node:crypto';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { rspack } from '@rspack/core';

const here = join(dirname(fileURLToPath(import.meta.url)), '..');
const target = join(here, '../hub_spawner/fleet_hub/pages/assets/fleet');

/** The digest of what is bundled; `tests/unit/lab` computes the same. */
async function digest() {
  const hash = createHash('sha256');
  for (const folder of ['page', 'timeline']) {
    const names = await readdir(join(here, 'src', folder));
    for (const name of names.sort()) {
      hash.update(await readFile(join(here, 'src', folder, name)));
    }
  }
  return hash.digest('hex');
}

const STYLE_HEAD =
  '/* Written by "npm run build:pages" from style/timeline.css of the panel; do not edit. */\n';

const compiler = rspack({
  mode: 'production',
  context: here,
  entry: './lib/page/index.js',
  target: ['web', 'es2022'],
  devtool: false,
  output: {
    path: target,
    filename: 'timeline.js',
    library: { name: 'FleetTimeline', type: 'window' }
  }
});

compiler.run(async (error, stats) => {
  if (error || stats.hasErrors()) {
    console.error(error ?? stats.toString('errors-only'));
    process.exitCode = 1;
    return;
  }
  const script = join(target, 'timeline.js');
  const built = await readFile(script, 'utf8');
  const head = `/* Built by "npm run build:pages" from the sources ${await digest()} */\n`;
  await writeFile(script, `${head}${built.trimEnd()}\n`);
  const style = await readFile(join(here, 'style/timeline.css'), 'utf8');
  await writeFile(join(target, 'timeline.css'), `${STYLE_HEAD}${style}`);
  compiler.close(() => undefined);
});
