// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** The plugins. Each can be disabled by itself: `jupyter labextension disable …`. */
import { launcher } from './plugins/launcher.js';
import { notifications } from './plugins/notifications.js';
import { panel } from './plugins/panel.js';
import { statusItem } from './plugins/statusitem.js';
import { timeline } from './plugins/timeline.js';

export { CommandIDs, IFleetTimeline } from './tokens.js';

export default [timeline, panel, statusItem, launcher, notifications];
