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
        larder get json:sessions.json ada --slide --ttl 30m
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @Argument(help: "The key.") var key: String
  @OptionGroup var keys: KeyOptions
  @Flag(help: "Put the deadline off: by the window of an entry that slides, by --ttl otherwise.")
  var slide = false
  @Option(help: ArgumentHelp("With --slide: how long the entry lives from now on, like 30m.", valueName: "time"))
  var ttl: LifetimeArgument?

  func validate() throws {
    guard slide || ttl == nil else { throw ValidationError("--ttl puts a deadline off only together with --slide") }
    guard !slide || access.access == nil || access.access == .readWrite else {
      throw ValidationError("--slide writes to the store, so leave out --read-only and --immutable")
    }
  }

  func run() async throws {
    let key = try keys.key(key)
    let isFound = try await StoreSession.runOpened(
      store.url, createsIfMissing: false, access: slide ? .readWrite : access.storeAccess, meter: store.meter
    ) { store, output in
      if slide { try await store.putOffDeadline(of: key, by: ttl?.duration) }
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
