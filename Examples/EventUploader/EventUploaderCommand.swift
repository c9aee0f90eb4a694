import ArgumentParser

@main
struct EventUploaderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "EventUploader",
    abstract:
      "The outbox of an analytics client: events go through a durable queue to a server that fails now and then.",
    discussion: """
      `show`, which is what happens where nothing is said, runs a server in this process and a client in another, which it \
      kills and starts again a few times, and proves in the end that every event which was recorded has been received. \
      `client` is that client.
      """,
    subcommands: [ShowCommand.self, ClientCommand.self], defaultSubcommand: ShowCommand.self)
}
