import ArgumentParser

@main
struct EventUploaderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "EventUploader",
    abstract:
      "The outbox of an analytics client, whose events pass through a durable queue to an unreliable server.",
    discussion: """
      `show`, the default, runs a server in this process and a client in another one. It kills the client a few times, \
      starts it again, and finally proves that every recorded event was received. `client` is that client.
      """,
    subcommands: [ShowCommand.self, ClientCommand.self], defaultSubcommand: ShowCommand.self)
}
