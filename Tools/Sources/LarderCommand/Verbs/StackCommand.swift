import ArgumentParser
import StoreAccess

/// `larder stack`.
struct StackCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stack",
    abstract: "Print the store and the layers that a configuration gives a name.",
    discussion: """
      Checks the configuration as a program does, and opens nothing. The file is JSON, or YAML if its name ends in .yaml \
      or .yml. Variables such as STORES_SESSIONS_URL take precedence. Without a name, prints all that a configuration can \
      choose from. With --config, all verbs take the name of a stack in place of a URL.

        larder stack sessions --config app.json
        larder --config app.json list sessions
      """)

  @Argument(help: ArgumentHelp("The name of the stack, such as sessions.", valueName: "name"))
  var name: String?

  func run() throws {
    let output = ByteOutput()
    try output.writeLine(try ConfiguredStacks.description(of: name))
    try output.flush()
  }
}
