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
  @OptionGroup var value: ValueArgument
  @OptionGroup var keys: KeyOptions
  @OptionGroup var lifetime: LifetimeOption

  func run() async throws {
    let key = try keys.key(key)
    let value = try value.json()
    try await StoreSession.run(store.url, createsIfMissing: true, expiration: lifetime.expiration, meter: store.meter) {
      store, _ in
      try await store.setValue(value, forKey: key)
    }
  }
}
