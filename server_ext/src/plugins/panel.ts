// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Clipboard, ICommandPalette, Notification } from '@jupyterlab/apputils';

import { timelineIcon } from '../icon.js';
import { TimelinePanel } from '../panel.js';
import { asSupportText } from '../support.js';
import { asJson } from '../timeline/index.js';
import { CommandIDs, IFleetTimeline, NAME } from '../tokens.js';

const NO_ARGUMENTS = {
  args: { type: 'object', properties: {}, additionalProperties: false }
} as const;

/** Adds the side panel and the commands. */
export const panel: JupyterFrontEndPlugin<void> = {
  id: `${NAME}:panel`,
  description: 'Shows the admission timeline in a side panel.',
  autoStart: true,
  requires: [IFleetTimeline],
  optional: [ILayoutRestorer, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    fleet: IFleetTimeline,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ): void => {
    const { trans } = fleet.words;
    const run = (command: string) => () => void app.commands.execute(command);
    const widget = new TimelinePanel(fleet, {
      refresh: run(CommandIDs.refresh),
      copyText: run(CommandIDs.copyText),
      copyJson: run(CommandIDs.copyJson)
    });
    widget.id = 'jp-fleet-timeline';
    widget.title.icon = timelineIcon;
    widget.title.caption = trans.__('Admission Timeline');
    addCommands(app, fleet, widget);
    app.shell.add(widget, 'right', { rank: 900, type: 'Admission Timeline' });
    restorer?.add(widget, widget.id);
    const category = trans.__('Server');
    for (const command of Object.values(CommandIDs)) {
      palette?.addItem({ command, category });
    }
  }
};

function addCommands(
  app: JupyterFrontEnd,
  fleet: IFleetTimeline,
  widget: TimelinePanel
): void {
  const { model, words } = fleet;
  const { trans } = words;
  const copy = (text: string) => {
    Clipboard.copyToSystem(text);
    Notification.success(trans.__('Copied.'), { autoClose: 2_000 });
  };
  app.commands.addCommand(CommandIDs.open, {
    label: trans.__('Admission Timeline'),
    caption: trans.__('Show what this server waited for, and where it runs.'),
    icon: timelineIcon,
    describedBy: NO_ARGUMENTS,
    execute: () => app.shell.activateById(widget.id)
  });
  app.commands.addCommand(CommandIDs.refresh, {
    label: trans.__('Ask for the Admission Timeline Again'),
    caption: trans.__('Ask the fleet’s controller at once.'),
    describedBy: NO_ARGUMENTS,
    execute: () => model.refresh()
  });
  app.commands.addCommand(CommandIDs.copyText, {
    label: trans.__('Copy the Admission Timeline as Text'),
    caption: trans.__('For a message to whoever helps; without tokens.'),
    describedBy: NO_ARGUMENTS,
    execute: () => copy(asSupportText(model, `${app.name} ${app.version}`))
  });
  app.commands.addCommand(CommandIDs.copyJson, {
    label: trans.__('Copy the Admission Timeline as JSON'),
    caption: trans.__('The document as the controller sent it.'),
    describedBy: NO_ARGUMENTS,
    isEnabled: () => model.timeline !== null,
    execute: () => model.timeline && copy(asJson(model.timeline))
  });
  model.changed.connect(() => {
    app.commands.notifyCommandChanged(CommandIDs.copyJson);
  });
}
