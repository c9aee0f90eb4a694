import ArgumentParser
import Larder
import LarderExpiry
import StoreAccess

/// `larder set`.
struct SetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Set the value of a key.",
    discussion: """
      A missing store is created. With --raw, the value is bytes if the store has the codec raw, and text otherwise. In a \
      store with the codec cbor, it is a byte string if it is not UTF-8 or replaces a byte string.

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
  @Flag(name: .customLong("raw"), help: "Use the value as text or bytes, not as JSON.") var isRaw = false
  @OptionGroup var keys: KeyOptions
  @OptionGroup var ttl: TimeToLiveOption
  @OptionGroup var table: LayoutOption

  func run() async throws {
    let key = try keys.key(key)
    let json = isRaw ? nil : try value.json()
    let bytes = isRaw ? try value.bytes() : []
    try await StoreSession.run(
      store.target(layout: table.layout), createsIfMissing: true, timeToLive: ttl.timeToLive
    ) { store, _ in
      let value = if let json { json } else { try await rawValue(of: bytes, forKey: key, in: store) }
      try await store.present.setValue(value, forKey: key)
    }
  }

  /// Returns the value for `--raw`, which is a byte string if the current value is one.
  private func rawValue(of bytes: [UInt8], forKey key: StoreKey, in store: OpenedStore) async throws -> JSONText {
    let previous = RawValue.hasByteStrings(store.codecName) ? try await store.peekValue(forKey: key) : nil
    return try RawValue.value(of: bytes, codecName: store.codecName, replacing: previous)
  }
}
