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
import { asJson, fileName, toFile } from '../timeline/index.js';
import { CommandIDs, IFleetTimeline, NAME } from '../tokens.js';

const NO_ARGUMENTS = {
  args: { type: 'object', properties: {}, additionalProperties: false }
} as const;

type CommandOptions = Parameters<JupyterFrontEnd['commands']['addCommand']>[1];

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
    const widget = new TimelinePanel(
      fleet,
      action => void app.commands.execute(CommandIDs[action])
    );
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
  const save = (extension: 'txt' | 'json', text: string) =>
    toFile(fileName(model.timeline, model.now, extension), text);
  const text = () => asSupportText(model, `${app.name} ${app.version}`);
  const json = () => (model.timeline ? asJson(model.timeline) : '');
  const isKnown = () => model.timeline !== null;
  const forWhom = trans.__('For a message to whoever helps; without tokens.');
  const asSent = trans.__('The document as the controller sent it.');
  const add = (
    id: string,
    label: string,
    caption: string,
    execute: () => unknown,
    more: Partial<CommandOptions> = {}
  ) =>
    app.commands.addCommand(id, {
      label,
      caption,
      describedBy: NO_ARGUMENTS,
      execute,
      ...more
    });
  add(
    CommandIDs.open,
    trans.__('Admission Timeline'),
    trans.__('Show what this server waited for, and where it runs.'),
    () => app.shell.activateById(widget.id),
    { icon: timelineIcon }
  );
  add(
    CommandIDs.refresh,
    trans.__('Ask for the Admission Timeline Again'),
    trans.__('Ask the fleet’s controller at once.'),
    () => model.refresh()
  );
  add(
    CommandIDs.copyText,
    trans.__('Copy the Admission Timeline as Text'),
    forWhom,
    () => copy(text())
  );
  add(
    CommandIDs.copyJson,
    trans.__('Copy the Admission Timeline as JSON'),
    asSent,
    () => copy(json()),
    { isEnabled: isKnown }
  );
  add(
    CommandIDs.saveText,
    trans.__('Download the Admission Timeline as Text'),
    forWhom,
    () => save('txt', text())
  );
  add(
    CommandIDs.saveJson,
    trans.__('Download the Admission Timeline as JSON'),
    asSent,
    () => save('json', json()),
    { isEnabled: isKnown }
  );
  model.changed.connect(() => {
    app.commands.notifyCommandChanged(CommandIDs.copyJson);
    app.commands.notifyCommandChanged(CommandIDs.saveJson);
  });
}
