// Runs inside OpenCode, behind a first line that sets `settings`: the gate's URL, the variables that commands get back,
// the limits, and the file in which this plugin says that it ended a message.
const own = /^(XDG_|OPENCODE_|npm_config_)/;
const broken = "this call could not be checked and was withheld";
const children = new Set();
const finished = new Set();

export const Session = async ({ client }) => ({
  event: async ({ event }) => {
    const { type, properties } = event;
    const stop = async (session, reason, message) => {
      await Bun.write(settings.ended, JSON.stringify({ reason, message }));
      await client.session.abort({ path: { id: session } });
    };
    if (type === "session.created" && properties.info.parentID) children.add(properties.info.id);
    if (type === "session.status" && properties.status.type === "retry") {
      if (properties.status.attempt > settings.attempts) await stop(properties.sessionID, "refused", properties.status.message);
    }
    if (type === "message.part.updated" && settings.turns !== null) {
      const part = properties.part;
      if (part.type !== "step-finish" || children.has(part.sessionID)) return;
      finished.add(part.messageID);
      if (finished.size >= settings.turns && part.reason === "tool-calls")
        await stop(part.sessionID, "max-turns", `${finished.size} turns`);
    }
  },
  "shell.env": async (_input, output) => {
    for (const name of Object.keys(process.env)) if (own.test(name)) output.env[name] = undefined;
    Object.assign(output.env, settings.restored);
  },
  "tool.execute.before": async (input, output) => {
    if (settings.gate === null) return;
    let verdict;
    try {
      const session = await client.session.get({ path: { id: input.sessionID } });
      const call = {
        tool: input.tool,
        arguments: output.args ?? {},
        call_id: input.callID,
        subagent: Boolean(session.data.parentID),
      };
      const answer = await fetch(settings.gate, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(call),
        signal: AbortSignal.timeout(20000),
      });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      verdict = await answer.json();
    } catch (error) {
      throw new Error(broken);
    }
    if (verdict?.allow !== true) throw new Error(verdict?.reason || broken);
  },
});
