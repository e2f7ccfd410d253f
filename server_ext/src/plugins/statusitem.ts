// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';

import { StatusItem } from '../statusitem.js';
import { CommandIDs, IFleetTimeline, NAME } from '../tokens.js';

/** Adds the item of the status bar, where there is a status bar. */
export const statusItem: JupyterFrontEndPlugin<void> = {
  id: `${NAME}:status-item`,
  description: 'Shows the admission in the status bar.',
  autoStart: true,
  requires: [IFleetTimeline],
  optional: [IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    fleet: IFleetTimeline,
    bar: IStatusBar | null
  ): void => {
    if (!bar) {
      return;
    }
    const item = new StatusItem(
      fleet,
      () => void app.commands.execute(CommandIDs.open)
    );
    bar.registerStatusItem(statusItem.id, {
      item,
      // With what is said of the server and its kernels.
      align: 'left',
      rank: 100,
      priority: 1,
      isActive: () => item.isActive,
      activeStateChanged: item.activeChanged
    });
  }
};
