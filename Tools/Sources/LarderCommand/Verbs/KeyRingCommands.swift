public import ArgumentParser
import Foundation
import Larder
public import LarderCrypto
import LarderQueue
import StoreAccess

/// `larder keyring`.
struct KeyRingCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keyring",
    abstract: "Create and change the key rings of encrypted values.",
    discussion: """
      A ring is one of \(KeyRingLocation.kinds). Keys are shown by their identifiers only.

        larder keyring create file:keys.json
        larder set lmdb:users ada '{"name":"Ada"}' --key-ring file:keys.json --purpose users
        larder keyring list file:keys.json lmdb:users
      """,
    subcommands: [
      KeyRingCreateCommand.self, KeyRingListCommand.self, KeyRingRotateCommand.self, KeyRingAddCommand.self,
      KeyRingRemoveCommand.self,
    ])
}

/// The key ring that a verb works on.
struct KeyRingArgument: ParsableArguments {
  @Argument(help: "The key ring, such as file:keys.json: a kind, a colon and a place.") var ring: KeyRingLocation
  @Option(help: .passwordFile) var passwordFile: String?

  /// Opens the key ring.
  func open() async throws -> KeyRing {
    try await ring.open(passwordFile: passwordFile)
  }
}

/// The options of the verbs that count the values of stores by their keys, without decrypting them.
struct CountingOptions: ParsableArguments {
  @Option(help: .codec) var codec: StoreCodec?
  @OptionGroup var common: CommonOptions

  /// Returns a store with these options.
  func target(_ url: String) -> StoreTarget {
    common.target(url, codec: CodecChoice(codec: codec))
  }
}

/// `larder keyring create`.
struct KeyRingCreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Create a key ring with one new key, and print the identifier of the key.",
    discussion: """
      Refuses a ring that exists. Keep a copy of the ring in another place: without its keys, the values cannot be read.

        larder keyring create file:keys.json
        larder keyring create password-file:keys.jwe
      """)

  @OptionGroup var argument: KeyRingArgument

  func run() async throws {
    let ring = try await argument.ring.create(passwordFile: argument.passwordFile)
    try KeyRingLine.write(["\(ring.primary)"])
  }
}

/// `larder keyring list`.
struct KeyRingListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Print the keys of a ring, and the number of values that need each of them.",
    discussion: """
      Prints a line of JSON for each key with key, created and isPrimary, and with stores: the number of values of each \
      named store that need the key. A line without created is a key that the ring does not have. Values that are not \
      encrypted have the key null.

        larder keyring list file:keys.json
        larder keyring list file:keys.json lmdb:users json:sessions.json
      """)

  @OptionGroup var argument: KeyRingArgument
  @Argument(help: "The stores whose values are counted.") var stores: [String] = []
  @OptionGroup var counting: CountingOptions
  @OptionGroup var access: AccessOption

  func run() async throws {
    let ring = try await argument.open()
    var counts: [(store: String, counts: KeyCounts)] = []
    for store in stores {
      counts.append((store, try await KeyCounts(of: counting.target(store), access: access.storeAccess)))
    }
    func numbers(_ id: KeyRing.KeyID?) -> String {
      counts.map { "\(JSONText(string: $0.store)):\($0.counts.counts[id] ?? 0)" }.joined(separator: ",")
    }
    var lines = ring.keys.map { key in
      "{\"key\":\"\(key.id)\",\"created\":\"\(key.created.formatted(.iso8601))\",\"isPrimary\":\(key.isPrimary)"
        + (stores.isEmpty ? "}" : ",\"stores\":{\(numbers(key.id))}}")
    }
    let known = Set(ring.keys.map { Optional($0.id) })
    let others = Set(counts.flatMap(\.counts.counts.keys)).subtracting(known)
    lines += others.map { id in
      "{\"key\":\(id.map { "\"\($0)\"" } ?? "null"),\"stores\":{\(numbers(id))}}"
    }.sorted()
    try KeyRingLine.write(lines)
  }
}

/// `larder keyring rotate`.
struct KeyRingRotateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate",
    abstract: "Add a new key, which encrypts values from now on, and print its identifier.",
    discussion: """
      Existing values stay readable with their keys. Programs that have the ring open cannot read new values of others \
      until they load the ring again. If several programs share the ring, run it with --add first, load the ring again in \
      all of them, and then run it with --promote and the identifier.

        larder keyring rotate file:keys.json
        larder reencrypt lmdb:users --key-ring file:keys.json --purpose users
      """)

  @OptionGroup var argument: KeyRingArgument
  @Flag(help: "Only add the new key, which encrypts no values yet.") var add = false
  @Option(help: ArgumentHelp("Add no key; encrypt values with this key of the ring from now on.", valueName: "key"))
  var promote: KeyRing.KeyID?

  func validate() throws {
    guard !add || promote == nil else { throw ValidationError("--add and --promote exclude each other") }
  }

  func run() async throws {
    let ring = try await argument.open()
    let id: KeyRing.KeyID
    if let promote {
      try await ring.promote(promote)
      id = promote
    } else {
      id = add ? try await ring.addKey() : try await ring.rotate()
    }
    try KeyRingLine.write(["\(id)"])
  }
}

/// `larder keyring add`.
struct KeyRingAddCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Add the keys of another ring, such as a backup, and print the identifiers of the added keys.",
    discussion: """
      The added keys decrypt values and encrypt no new ones. The other ring stays as it is. Use it if a ring has lost a key \
      that values still need, or for the values of a restored backup.

        larder keyring add file:keys.json password-file:recovery.jwe
      """)

  @OptionGroup var argument: KeyRingArgument
  @Argument(help: "The key ring with the keys to add.") var other: KeyRingLocation
  @Option(help: ArgumentHelp("A file with the password of the other ring.", valueName: "path"))
  var otherPasswordFile: String?

  func run() async throws {
    let ring = try await argument.open()
    let added = try await ring.addKeys(from: try await other.open(passwordFile: otherPasswordFile))
    try KeyRingLine.write(added.map { "\($0)" })
  }
}

/// `larder keyring remove`.
struct KeyRingRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Permanently remove a key from a ring, unless a value of the named stores needs it.",
    discussion: """
      A ring does not know which stores use it, so name all of them. Values of other stores that need the key can never be \
      read again. Before that, load the ring again in all programs, or restart them, and then run larder reencrypt, or they \
      may still write values with the key.

        larder keyring remove file:keys.json 8a1f04c2d95be370 lmdb:users
      """)

  @OptionGroup var argument: KeyRingArgument
  @Argument(help: "The identifier of the key.") var key: KeyRing.KeyID
  @Argument(help: "The stores that use the ring.") var stores: [String] = []
  @OptionGroup var counting: CountingOptions
  @OptionGroup var access: AccessOption
  @Flag(name: .customLong("no-stores"), help: "No store uses the key.") var isUnused = false

  func validate() throws {
    guard isUnused == stores.isEmpty else {
      throw ValidationError(
        isUnused ? "--no-stores and stores exclude each other" : "name the stores that use the ring, or --no-stores")
    }
  }

  func run() async throws {
    let ring = try await argument.open()
    for store in stores {
      let counts = try await KeyCounts(of: counting.target(store), access: access.storeAccess)
      let count = counts.counts[key] ?? 0
      guard count == 0, counts.unreadableCount == 0 else {
        let reason =
          count > 0
          ? "\(EntryCount.text(count)) of \(store) \(count == 1 ? "needs" : "need") the key \(key)"
          : "\(EntryCount.text(counts.unreadableCount)) of \(store) cannot be read, so they may need the key"
        throw CommandFailure(
          .badData, reason,
          advice:
            "Run larder keyring rotate if it is the primary key, then larder reencrypt, and requeue or purge dead "
            + "letters; the key was not removed.")
      }
    }
    try await ring.remove(key)
  }
}

/// The number of values of a store that need each key.
struct KeyCounts {
  /// The number of values by key; `nil` stands for values that are not encrypted.
  private(set) var counts: [KeyRing.KeyID?: Int] = [:]

  /// The number of entries whose bytes cannot be read.
  private(set) var unreadableCount = 0

  /// Counts the values, without their keys.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - access: The access of the store to its files.
  /// - Throws: The errors of opening and reading the store, except for damaged values.
  init(of target: StoreTarget, access: StoreAccess) async throws {
    self = try await StoreSession.runEncoded(target, access: access) { opened, _ in
      try await KeyCounts(of: opened)
    }
  }

  private init(of opened: EncodedStore) async throws {
    let name = CodecName(opened.codecName)
    try await opened.store.visitValues { count($0, of: name) }
    // A dead letter is no entry, but it can be requeued.
    var letters = try await opened.queue?.deadLetters(limit: 256) ?? []
    while let last = letters.last {
      for letter in letters {
        switch letter.value {
        case .success(let bytes): count(bytes, of: name)
        case .failure: count(nil, of: name)
        }
      }
      letters = try await opened.queue?.deadLetters(limit: 256, after: last.sequence) ?? []
    }
  }

  /// Counts a value, or `nil` for one that cannot be read.
  ///
  /// The values of a store of bytes can be encrypted by a view, so every value is looked at, whatever the codec.
  private mutating func count(_ value: [UInt8]?, of name: CodecName) {
    guard let value else { return unreadableCount += 1 }
    do {
      counts[try KeyRing.KeyID(ofEncryptedValue: value.span.bytes), default: 0] += 1
    } catch {
      // A transform around the encryption hides the key.
      if "\(name)".contains(EncryptedCodec<JSONTextCodec>.nameSuffix) {
        unreadableCount += 1
      } else {
        counts[nil, default: 0] += 1
      }
    }
  }
}

/// The lines that the verbs of key rings print.
private enum KeyRingLine {
  static func write(_ lines: [String]) throws {
    let output = ByteOutput()
    for line in lines { try output.writeLine(line) }
    try output.flush()
  }
}

extension KeyRing.KeyID: @retroactive ExpressibleByArgument {
  /// Parses an identifier of 16 hexadecimal digits.
  public init?(argument: String) {
    self.init(argument)
  }
}
