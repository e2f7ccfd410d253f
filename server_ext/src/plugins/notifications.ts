// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';

import type { IIncident } from '../incidents.js';
import { Notifier } from '../notifier.js';
import { CommandIDs, IFleetTimeline, NAME } from '../tokens.js';

/** Tells of a stop that is near, of a silent machine and of a failure. */
export const notifications: JupyterFrontEndPlugin<void> = {
  id: `${NAME}:notifications`,
  description: 'Tells when this server is about to end, or lost its machine.',
  autoStart: true,
  requires: [IFleetTimeline],
  activate: (app: JupyterFrontEnd, fleet: IFleetTimeline): void => {
    const label = fleet.words.trans.__('Open timeline');
    const actions = [
      { label, callback: () => void app.commands.execute(CommandIDs.open) }
    ];
    const lasting = ({ isOver }: IIncident) => (isOver ? 5_000 : false);
    new Notifier(fleet, {
      tell: incident =>
        Notification.emit(incident.message, incident.type, {
          autoClose: lasting(incident),
          actions
        }),
      retell: (id, incident) =>
        void Notification.update({
          id,
          message: incident.message,
          type: incident.type,
          autoClose: lasting(incident),
          actions
        })
    });
  }
};
