// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Bundles src/timeline for pages without JupyterLab: one script that puts its exports
 * into `FleetTimeline`, and its style sheet. The Hub includes both into its pages, so
 * that a page needs nobody to serve them; hence a plain script, which can be inline.
 *
 * Run `tsc -p .` first. The same sources give the same bytes: the result is kept in
 * the repository, because a Hub is installed without Node, and a test builds it anew.
 */
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { rspack } from '@rspack/core';

const here = join(dirname(fileURLToPath(import.meta.url)), '..');
const assets = '../hub_spawner/fleet_hub/pages/assets/fleet';
const target = process.argv[2] ?? join(here, assets);

const compiler = rspack({
  mode: 'production',
  context: here,
  entry: './lib/timeline/index.js',
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
  await mkdir(target, { recursive: true });
  const style = 'timeline.css';
  await copyFile(join(here, 'style', style), join(target, style));
  compiler.close(() => undefined);
});
