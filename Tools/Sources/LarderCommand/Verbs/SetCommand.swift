import ArgumentParser
import Larder
import LarderExpiry

/// `larder set`.
struct SetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Put a value under a key, in place of any other.",
    discussion: """
      Makes the store where it is missing. With --raw the value is taken as it is: as bytes if the store has the codec \
      raw, otherwise as text. In a store with the codec cbor it is a byte string if it is not UTF-8 or replaces one.

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
      let value = if let json { json } else { try await rawValue(of: bytes, forKey: key, in: store) }
      try await store.present.setValue(value, forKey: key)
    }
  }

  /// The value of `--raw`, which stays a byte string if the key has one.
  private func rawValue(of bytes: [UInt8], forKey key: StoreKey, in store: OpenedStore) async throws -> JSONText {
    // What is stored, so that a deadline that slides stays where it is.
    let previous = RawValue.hasByteStrings(store.codecName) ? try await store.stored.value(forKey: key)?.value : nil
    return try RawValue.value(of: bytes, codecName: store.codecName, replacing: previous)
  }
}
