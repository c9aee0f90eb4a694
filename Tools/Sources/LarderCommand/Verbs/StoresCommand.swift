import ArgumentParser
import Larder

/// `larder stores`.
struct StoresCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stores",
    abstract: "Print the URLs of the stores in an LMDB environment.",
    discussion: """
      Prints one URL on a line, in the order of the names. The environment may have databases of other programs, too.

        larder stores lmdb:shop
      """)

  @Argument(help: ArgumentHelp("The environment, like lmdb:shop.", valueName: "environment"))
  var environment: String
  @OptionGroup var access: AccessOption
  @OptionGroup var opening: OpeningOptions

  func run() async throws {
    try await StoreSession.runEnvironment(opening.target(environment), access: access.storeAccess) { urls, output in
      for url in urls { try output.writeLine(url) }
    }
  }
}
