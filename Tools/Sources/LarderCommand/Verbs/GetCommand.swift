import ArgumentParser
import Larder

/// `larder get`.
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print the value of a key.",
    discussion: """
      Prints the value as one line of JSON. Prints nothing and ends with 1 where there is no such key.

        larder get json:users.json ada
        larder get json:users.json --key-hex 80c0
        larder get json:users.json -- -key-with-a-dash
      """)

  @OptionGroup var store: StoreArgument
  @Argument(help: "The key.") var key: String
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let key = try keys.key(key)
    let isFound = try await StoreSession.run(store.url, createsIfMissing: false) { store, output in
      guard let value = try await store.value(forKey: key) else { return false }
      try output.writeLine { $0.append(contentsOf: value.bytes) }
      return true
    }
    if !isFound { throw ExitStatus.missing }
  }
}
