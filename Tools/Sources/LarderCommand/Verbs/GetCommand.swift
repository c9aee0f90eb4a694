import ArgumentParser
import Larder
import LarderExpiry

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
        larder get json:sessions.json ada --slide 30m
      """)

  @OptionGroup var store: StoreArgument
  @Argument(help: "The key.") var key: String
  @OptionGroup var keys: KeyOptions
  @Option(
    help: ArgumentHelp(
      "Let the entry live for so long from now on, like 500ms, 2s, 5m or 1h; for stores made with --ttl.",
      valueName: "time"))
  var slide: LifetimeArgument?

  func run() async throws {
    let key = try keys.key(key)
    let isFound = try await StoreSession.runOpened(store.url, createsIfMissing: false, meter: store.meter) {
      store, output in
      if let slide {
        try await store.expiring().touch(key, lifetime: .limited(slide.duration))
      }
      guard let value = try await look(at: key, in: store) else { return false }
      try output.writeLine { $0.append(contentsOf: value.bytes) }
      return true
    }
    if !isFound { throw ExitStatus.missing }
  }

  /// Reads a value, and does not put off a deadline that slides: to look at an entry is not to use it.
  private func look(at key: StoreKey, in store: OpenedStore) async throws -> JSONText? {
    guard store.expiry != nil else { return try await store.present.value(forKey: key) }
    return try await store.present.entries(in: .only(key), limit: 1).first?.value
  }
}
