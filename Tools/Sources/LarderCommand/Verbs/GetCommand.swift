import ArgumentParser
import Larder
import LarderExpiry

/// `larder get`.
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print the value of a key, or the entries of several.",
    discussion: """
      Prints the value as one line of JSON. With --raw a string comes without quotes, and bytes as they are (a CBOR byte \
      string, or a value of a codec that the tool does not know), without an end of line; anything else stays JSON. For \
      several keys it prints lines {"key":…,"value":…} as list does. What is missing is left out, and makes it end with 1.

        larder get json:users.json ada
        larder get json:users.json ada grace
        larder get json:users.json greeting --raw
        larder get json:users.json --key-hex 80c0
        larder get json:users.json -- -key-with-a-dash
        larder get json:sessions.json ada --slide --ttl 30m
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @Argument(help: ArgumentHelp("The key, or several.", valueName: "key")) var names: [String]
  @OptionGroup var keys: KeyOptions
  @Flag(name: .customLong("raw"), help: "Print text without quotes, and bytes as they are.") var isRaw = false
  @Flag(help: "Put the deadline off: by the window of an entry that slides, by --ttl otherwise.")
  var slide = false
  @Option(help: ArgumentHelp("With --slide: how long the entry lives from now on, like 30m.", valueName: "time"))
  var ttl: LifetimeArgument?

  func validate() throws {
    guard slide || ttl == nil else { throw ValidationError("--ttl puts a deadline off only together with --slide") }
    guard !isRaw || names.count == 1 else { throw ValidationError("--raw prints one value, so give one key") }
    guard !slide || access.access == nil || access.access == .readWrite else {
      throw ValidationError("--slide writes to the store, so leave out --read-only and --immutable")
    }
  }

  func run() async throws {
    let keys = try names.map { try self.keys.key($0) }
    let areAllFound = try await StoreSession.runOpened(
      store.target, createsIfMissing: false, access: slide ? .readWrite : access.storeAccess
    ) { store, output in
      var areAllFound = true
      for key in keys {
        if slide { try await store.putOffDeadline(of: key, by: ttl?.duration) }
        guard let value = try await look(at: key, in: store) else {
          areAllFound = false
          continue
        }
        if isRaw {
          try output.write(try RawValue.bytes(of: value, codecName: store.codecName))
        } else if keys.count == 1 {
          try output.writeLine { $0.append(contentsOf: value.bytes) }
        } else {
          try output.writeLine { EntryLine.append(key: key, value: value, to: &$0) }
        }
      }
      return areAllFound
    }
    if !areAllFound { throw ExitStatus.missing }
  }

  /// Reads a value, and does not put off a deadline that slides: to look at an entry is not to use it.
  private func look(at key: StoreKey, in store: OpenedStore) async throws -> JSONText? {
    guard store.expiry != nil else { return try await store.present.value(forKey: key) }
    return try await store.present.entries(in: .only(key), limit: 1).first?.value
  }
}
