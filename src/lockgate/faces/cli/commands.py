"""The commands by what people want to do, and the help that lists them; nothing slow is imported.

`lockgate --help` prints this text without loading click, which takes longer than all the rest.
"""

COMMANDS = {
    "answer": "lockgate.faces.cli.answer.people:answer",
    "approve": "lockgate.faces.cli.answer.people:approve",
    "auth": "lockgate.faces.cli.setup.auth:auth",
    "backup": "lockgate.faces.cli.operate.upkeep:backup",
    "checkpoint": "lockgate.faces.cli.agents.signals:checkpoint",
    "completion": "lockgate.faces.cli.setup.completion:completion",
    "comment": "lockgate.faces.cli.answer.people:comment",
    "db": "lockgate.faces.cli.groups:db",
    "demo": "lockgate.faces.demo.command:demo",
    "diff": "lockgate.faces.cli.answer.people:diff",
    "doctor": "lockgate.faces.cli.setup.doctor:doctor",
    "du": "lockgate.faces.cli.operate.cleaning:du",
    "fleet": "lockgate.faces.cli.groups:fleet",
    "forge": "lockgate.faces.cli.groups:forge",
    "gate": "lockgate.faces.cli.groups:gate",
    "handback": "lockgate.faces.cli.answer.people:handback",
    "inbox": "lockgate.faces.cli.look.status:inbox",
    "init": "lockgate.faces.cli.setup.init:init",
    "issue": "lockgate.faces.cli.groups:issue",
    "login": "lockgate.faces.cli.setup.login:login",
    "logout": "lockgate.faces.cli.setup.login:logout",
    "notify": "lockgate.faces.cli.groups:notify",
    "mcp": "lockgate.faces.cli.setup.mcp:mcp",
    "open": "lockgate.faces.cli.answer.people:open_change",
    "people": "lockgate.faces.cli.groups:people",
    "pr": "lockgate.faces.cli.groups:pr",
    "prune": "lockgate.faces.cli.operate.cleaning:prune",
    "queue": "lockgate.faces.cli.groups:queue",
    "review": "lockgate.faces.cli.agents.signals:review",
    "run": "lockgate.faces.cli.operate.run:run",
    "say": "lockgate.faces.cli.answer.talk:say",
    "shell": "lockgate.faces.cli.answer.people:shell",
    "step": "lockgate.faces.cli.agents.step:step",
    "takeover": "lockgate.faces.cli.answer.people:takeover",
    "task": "lockgate.faces.cli.groups:task",
    "reject": "lockgate.faces.cli.answer.people:reject",
    "restore": "lockgate.faces.cli.operate.upkeep:restore",
    "resume": "lockgate.faces.cli.answer.people:resume",
    "stats": "lockgate.faces.cli.look.stats:stats",
    "events": "lockgate.faces.cli.look.events:events",
    "trust": "lockgate.faces.cli.setup.trust:trust",
    "tui": "lockgate.faces.cli.look.tui:tui",
    "undo": "lockgate.faces.cli.operate.queue:undo",
    "up": "lockgate.faces.cli.operate.up:up",
    "down": "lockgate.faces.cli.operate.up:down",
    "status": "lockgate.faces.cli.look.status:status",
    "web": "lockgate.faces.cli.operate.web:web",
    "verify": "lockgate.faces.cli.operate.queue:verify",
    "worker": "lockgate.faces.cli.operate.fleet:worker",
}
SAYS = {
    "init": "Find how this repository is tested, and set Lockgate up for it.",
    "auth": "Store how an agent logs in: a token, a key or a variable's name.",
    "run": "Create a task, start it, and follow it until it is ready to land.",
    "doctor": "Check this machine: what is missing, and how to install it.",
    "demo": "Watch three agents at work in a throw-away repository.",
    "trust": "Show what this repository asks for beyond the sandbox; agree.",
    "tui": "Open the board: what needs you first, and the key that answers it.",
    "status": "Show what needs you, in all projects, and who is at work.",
    "inbox": "Show all that needs you, in all projects, the most urgent first.",
    "diff": "Show the change of a task.",
    "open": "Open the change of a task in your editor.",
    "task": "Create, show, explain, move and cancel tasks.",
    "gate": "List the gates, explain them, and run them on your own commit.",
    "events": "Show everything that happened, oldest first.",
    "stats": "Show what landed, what it cost, how long it took, what failed.",
    "verify": "Show which gates checked a commit that landed.",
    "approve": "Say yes to what waits for you: a gate of the task, or its landing.",
    "reject": "Say no to a change; its agent gets your reason and works on.",
    "comment": "Comment on a change that waits for you, and leave it waiting.",
    "answer": "Answer the question of a task's agent.",
    "say": "Send a message to a task's agent, which reads it at its next turn.",
    "takeover": "Work in a task's agent session yourself.",
    "shell": "Open a shell in a task's workspace, in its agent's sandbox.",
    "handback": "Give a task back that you took over; its gates check your work.",
    "resume": "Let a paused task continue, with its failed attempts reset.",
    "undo": "Revert what a task landed, as a new task that passes the gates.",
    "up": "Run the orchestrator, which starts agents and checks their work.",
    "down": "Stop the orchestrator.",
    "worker": "Do the jobs of a fleet on this host.",
    "fleet": "Show and steer the hosts that share one database.",
    "queue": "Show and steer the merge queue: approve, hold, drop.",
    "forge": "Check the login at GitHub, look at it now, take its webhooks.",
    "pr": "Show the pull request of a task; adopt or restore its branch.",
    "issue": "Show the issues that become tasks, and take them now.",
    "notify": "Choose who is told of what needs a human, and how.",
    "mcp": "Give assistants and agents these commands as tools, over MCP.",
    "people": "List and name the people of this home, with what each may do.",
    "login": "Log in at a team's server; commands are then done there.",
    "logout": "Log out at the server; commands are then done here.",
    "web": "Serve the board to a browser, on the desk and on the phone.",
    "backup": "Write a copy of this home to FILE, while everything goes on.",
    "restore": "Make a home from a backup, on this machine or another.",
    "du": "Show where the disk space of this home goes, by project and kind.",
    "prune": "Remove what is too old to be kept, and pack repositories, now.",
    "db": "Move this home to another database, checked row by row.",
    "completion": "Print the completion script for your shell.",
    "checkpoint": "Save the state of the work; --done also hands it in.",
    "review": "Hand in a review.",
    "step": "Take a task through its steps, such as a failing test first.",
}
SECTIONS = {
    "Start here": ("init", "auth", "run", "doctor", "demo", "trust"),
    "Look": (
        *("tui", "status", "inbox", "diff", "open", "task", "gate", "events", "stats", "verify"),
    ),
    "Answer": (
        *("approve", "reject", "comment", "answer", "say"),
        *("takeover", "shell", "handback", "resume", "undo"),
    ),
    "Operate": (
        *(
            "up",
            "down",
            "worker",
            "fleet",
            "queue",
            "forge",
            "pr",
            "issue",
            "web",
            "people",
            "notify",
            "mcp",
        ),
        *("login", "logout", "du", "prune", "backup", "restore", "db", "completion"),
    ),
    "For agents": ("checkpoint", "review", "step"),
}
OPTIONS = {
    "--version": "Show the version and exit.",
    "--json": "One JSON document on stdout.",
    "--help": "Show this message and exit.",
}
INTRO = """\
Usage: lockgate [OPTIONS] [COMMAND] [ARGS]...

  Run coding agents on a repository; nothing lands that has not passed its
  gates.

  Without a command: the board of this project, with what needs you first;
  in a pipe it is printed as a table.
"""


def help_text() -> str:
    """What `lockgate --help` prints; it fits into 80 columns."""
    parts = [INTRO]
    for title, names in SECTIONS.items():
        lines = (f"  {name:<10}  {SAYS[name]}" for name in names)
        parts.append("\n".join((f"{title}:", *lines, "")))
    options = (f"  {name:<10}  {says}" for name, says in OPTIONS.items())
    parts.append("\n".join(("Options:", *options, "")))
    parts.append("lockgate COMMAND --help says more. Any unique start of a task's id names it.")
    return "\n".join(parts)
