import ArgumentParser
import Larder

/// `larder set`.
struct SetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Put a value under a key, in place of any other.",
    discussion: """
      Makes the store where it is missing. With --raw the value is taken as it is: as text, or, where the store has the \
      codec raw, as bytes.

        larder set json:users.json ada '{"name":"Ada","born":1815}'
        larder set json:users.json greeting '"good morning"'
        curl https://example.com/user | larder set json:users.json ada -
        larder set json:users.json balance -- -5
        larder set json:users.json greeting 'good morning' --raw
        larder set json:sessions.json ada '"logged in"' --ttl 30m
      """)

  @OptionGroup var store: StoreArgument
  @Argument(help: "The key.") var key: String
  @OptionGroup var value: ValueArgument
  @Flag(name: .customLong("raw"), help: "Take the value as text or bytes, not as JSON.") var isRaw = false
  @OptionGroup var keys: KeyOptions
  @OptionGroup var lifetime: LifetimeOption

  func run() async throws {
    let key = try keys.key(key)
    let json = isRaw ? nil : try value.json()
    let bytes = isRaw ? try value.bytes() : []
    try await StoreSession.runOpened(store.target, createsIfMissing: true, expiration: lifetime.expiration) {
      store, _ in
      let value = try json ?? RawValue.value(of: bytes, codecName: store.codecName)
      try await store.present.setValue(value, forKey: key)
    }
  }
}
