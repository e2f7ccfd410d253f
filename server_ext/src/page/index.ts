// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** What the pages of the Hub and of the controller use: `FleetTimeline` in a script. */
export { ENDED } from '../timeline/index.js';
export { LiveTimeline } from './live.js';
export type { ILivePage } from './live.js';
export { Teller } from './teller.js';
