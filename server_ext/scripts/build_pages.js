// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Bundles src/timeline for pages without JupyterLab: an ES module and its style sheet,
 * into the Hub's assets. Run `tsc -p .` first; the same sources give the same bytes.
 */
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { rspack } from '@rspack/core';

const here = join(dirname(fileURLToPath(import.meta.url)), '..');
const target =
  process.argv[2] ??
  join(here, '../hub_spawner/fleet_hub/pages/assets/fleet/timeline');

const compiler = rspack({
  mode: 'production',
  context: here,
  entry: './lib/timeline/index.js',
  target: ['web', 'es2022'],
  devtool: false,
  output: {
    path: target,
    filename: 'timeline.js',
    library: { type: 'modern-module' },
    module: true
  }
});

compiler.run(async (error, stats) => {
  if (error || stats.hasErrors()) {
    console.error(error ?? stats.toString('errors-only'));
    process.exitCode = 1;
    return;
  }
  await mkdir(target, { recursive: true });
  await copyFile(
    join(here, 'style/timeline.css'),
    join(target, 'timeline.css')
  );
  compiler.close(() => undefined);
});
