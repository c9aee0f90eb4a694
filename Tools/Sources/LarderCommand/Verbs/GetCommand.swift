import ArgumentParser
import Larder
import LarderExpiry
import StoreAccess

/// `larder get`.
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print the value of a key, or the entries of several.",
    discussion: """
      Prints the value as one line of JSON. For several keys, prints lines {"key":...,"value":...} as list does. \
      Missing keys are skipped, and the exit code is then 1. At a terminal, JSON is indented and colored, unless NO_COLOR is \
      set.

      With --raw, a string is printed without quotes, and bytes are printed unchanged; both without an end of line. \
      Bytes are a CBOR byte string or a value of a codec that the tool does not know. Other values stay JSON.

        larder get json:users.json ada
        larder get json:users.json ada grace
        larder get json:users.json greeting --raw
        larder get json:users.json --key-hex 80c0
        larder get json:users.json -- -key-with-a-dash
        larder get json:sessions.json ada --slide --ttl 30m
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @Argument(help: ArgumentHelp("The keys.", valueName: "key")) var names: [String]
  @OptionGroup var keys: KeyOptions
  @Flag(name: .customLong("raw"), help: "Print text without quotes, and bytes unchanged.") var isRaw = false
  @Flag(help: "Extend the deadline, by the window of the entry if its deadline slides, otherwise by --ttl.")
  var slide = false
  @Option(help: ArgumentHelp("With --slide: the time to live from now on, such as 30m.", valueName: "time"))
  var ttl: TimeToLiveArgument?

  func validate() throws {
    guard slide || ttl == nil else { throw ValidationError("--ttl requires --slide") }
    guard !isRaw || names.count == 1 else { throw ValidationError("--raw prints one value; give one key") }
    guard !slide || access.access == nil || access.access == .readWrite else {
      throw ValidationError("--slide writes to the store; omit --read-only and --immutable")
    }
  }

  func run() async throws {
    let keys = try names.map { try self.keys.key($0) }
    let areAllFound = try await StoreSession.run(
      store.target, access: slide ? .readWrite : access.storeAccess
    ) { store, output in
      var areAllFound = true
      for key in keys {
        if slide { try await store.extendDeadline(of: key, by: ttl?.duration) }
        // Looking at an entry is not using it, so it does not move a sliding deadline.
        guard let value = try await store.peekValue(forKey: key) else {
          areAllFound = false
          continue
        }
        if isRaw {
          try output.write(try RawValue.bytes(of: value, codecName: store.codecName))
        } else if keys.count == 1 {
          try output.writeJSON { $0.append(contentsOf: value.bytes) }
        } else {
          try output.writeJSON { EntryLine.append(key: key, value: value, to: &$0) }
        }
      }
      return areAllFound
    }
    if !areAllFound { throw ExitStatus.missing }
  }
}
