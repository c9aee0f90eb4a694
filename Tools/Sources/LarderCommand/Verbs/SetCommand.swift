import ArgumentParser
import Larder

/// `larder set`.
struct SetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Put a value under a key, in place of any other.",
    discussion: """
      Makes the store where it is missing.

        larder set json:users.json ada '{"name":"Ada","born":1815}'
        larder set json:users.json greeting '"good morning"'
        curl https://example.com/user | larder set json:users.json ada -
        larder set json:users.json balance -- -5
        larder set json:sessions.json ada '"logged in"' --ttl 30m
      """)

  @OptionGroup var store: StoreArgument
  @Argument(help: "The key.") var key: String
  @Argument(help: ArgumentHelp("The value, or - to read it from standard input.", valueName: "json"))
  var value: String
  @OptionGroup var keys: KeyOptions
  @OptionGroup var lifetime: LifetimeOption

  func run() async throws {
    let key = try keys.key(key)
    let value = try value == ByteInput.standardInputPath ? valueFromStandardInput() : valueFromArgument()
    try await StoreSession.run(store.url, createsIfMissing: true, expiration: lifetime.expiration, meter: store.meter) {
      store, _ in
      try await store.setValue(value, forKey: key)
    }
  }

  private func valueFromArgument() throws -> JSONText {
    do {
      return try JSONText(value)
    } catch let error as JSONSyntaxError {
      throw CommandFailure(
        .usage, "the value is not JSON: \(error)", advice: "Text needs quotes of its own, as in '\"some text\"'.")
    }
  }

  private func valueFromStandardInput() throws -> JSONText {
    var input = try ByteInput(ByteInput.standardInputPath)
    do {
      return try JSONText(try input.readToEnd())
    } catch let error as JSONSyntaxError {
      throw CommandFailure(.badData, "standard input is not JSON: \(error)", advice: "Nothing was changed.")
    }
  }
}
