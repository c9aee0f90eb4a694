public import ArgumentParser
import Larder
import LarderMetrics
public import LarderSQLite

/// The store that a verb works on.
struct StoreArgument: ParsableArguments {
  @Argument(
    help: "The store, such as json:users.json: a scheme, a colon and a location, which needs no escaping.")
  var url: String
  @Option(help: .codec) var codec: StoreCodec?
  @OptionGroup var opening: OpeningOptions

  mutating func validate() throws {
    url = try ConfiguredStacks.url(url)
  }

  /// The store, with the options for opening it.
  var target: StoreTarget { target(layout: nil) }

  /// Returns the store, with the options for opening it.
  ///
  /// - Parameter layout: The table of a new SQLite store; `nil` for an ordinary one.
  func target(layout: SQLiteTableLayout?) -> StoreTarget {
    opening.target(url, layout: layout, codec: CodecChoice(codec: codec))
  }
}

/// The option of the verbs that can create an SQLite store.
struct LayoutOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The table of a new sqlite: store. A clustered one suits values below some 500 bytes.",
      valueName: "layout"))
  var layout: SQLiteTableLayout?
}

extension SQLiteTableLayout: @retroactive ExpressibleByArgument {}

extension StoreCodec: ExpressibleByArgument {}

extension ArgumentHelp {
  /// The help of an option for the codec of a store that records none.
  static let codec = ArgumentHelp(
    "The codec of the values of a store that records none: a new store, or one of another program.",
    valueName: "name")
}

/// The options of every verb that opens stores.
struct CommonOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "How long to wait while another program uses the store, such as 500ms or 1m. 0s does not wait.",
      valueName: "time"))
  var wait = DurationArgument(.seconds(5))
  @Flag(
    name: .customLong("metrics"),
    help: "Report the operations on the store on standard error, with their counts and latencies.")
  var reportsMetrics = false

  /// Returns a store with these options, without keys and without a layout.
  ///
  /// - Parameters:
  ///   - url: The URL of the store.
  ///   - codec: The codec of a store that records none. Defaults to no choice.
  func target(_ url: String, codec: CodecChoice = CodecChoice()) -> StoreTarget {
    StoreTarget(
      url: url, timeout: wait.duration, codec: codec,
      meter: reportsMetrics ? StoreMeter(name: url, logger: nil) : nil)
  }
}

/// The options of every verb that opens a store and may need the keys of its values.
struct OpeningOptions: ParsableArguments {
  @OptionGroup var common: CommonOptions
  @Option(
    help: ArgumentHelp(
      "The keys of encrypted values: \(KeyRingLocation.kinds). A new store is then encrypted.", valueName: "ring"))
  var keyRing: KeyRingLocation?
  @Option(help: ArgumentHelp("The purpose that the encrypted values are bound to.", valueName: "name"))
  var purpose: String?
  @Option(help: .passwordFile) var passwordFile: String?

  func validate() throws {
    guard (keyRing == nil) == (purpose == nil) else {
      throw ValidationError(
        keyRing == nil ? "--purpose needs --key-ring" : "--key-ring needs --purpose, which the values are bound to")
    }
    guard passwordFile == nil || keyRing != nil else { throw ValidationError("--password-file needs --key-ring") }
  }

  /// Returns a store with these options.
  ///
  /// - Parameters:
  ///   - url: The URL of the store.
  ///   - other: Another store, whose keys are those of this store too. Defaults to `nil`.
  ///   - layout: The table of a new SQLite store. Defaults to `nil`.
  ///   - codec: The codec of a store that records none. Defaults to no choice.
  func target(
    _ url: String, sharingKeysOf other: StoreTarget? = nil, layout: SQLiteTableLayout? = nil,
    codec: CodecChoice = CodecChoice()
  ) -> StoreTarget {
    var target = common.target(url, codec: codec)
    target.encryption = other?.encryption ?? encryption
    target.layout = layout
    return target
  }

  /// The keys of the values, or `nil` if there is no key ring.
  private var encryption: EncryptionChoice? {
    guard let keyRing, let purpose else { return nil }
    return EncryptionChoice(location: keyRing, passwordFile: passwordFile, purpose: purpose)
  }
}

/// A store to open.
struct StoreTarget: Sendable {
  /// The URL of the store.
  let url: String
  /// How long opening the store, and each write, waits while another program uses the store.
  let timeout: Duration
  /// The keys of the store's values, as options name them.
  ///
  /// Defaults to `nil`, for none.
  var encryption: EncryptionChoice?
  /// The table of a new SQLite store; `nil`, the default, for an ordinary one.
  var layout: SQLiteTableLayout?
  /// The codec of a store that records none.
  ///
  /// Defaults to no choice.
  var codec = CodecChoice()
  /// A Boolean value that indicates whether a damaged store also has entries that may have been replaced by newer ones,
  /// or removed.
  ///
  /// Defaults to `false`.
  var findsPossiblyOlder = false
  /// A Boolean value that indicates whether an existing LMDB store is read page by page, so no damage ends the process.
  ///
  /// Defaults to `false`.
  var examinesPages = false
  /// The meter of the store's operations; `nil` to measure nothing.
  let meter: StoreMeter?
}

/// The codec of the values of a store that records none, as an option names it.
struct CodecChoice: Sendable {
  /// The codec; `nil`, the default, for the usual one of a new store.
  var codec: StoreCodec?
  /// The name of the option.
  ///
  /// Defaults to `--codec`.
  var option = "--codec"
}

/// A codec that the tool can give to a store that records none.
enum StoreCodec: String, CaseIterable {
  case json
  case cbor
  case raw
}

/// The access of a verb that only reads its store.
struct AccessOption: ParsableArguments {
  /// The flags, which exclude each other.
  enum Access: EnumerableFlag {
    case readOnly
    case readWrite
    case immutable

    static func help(for value: Access) -> ArgumentHelp? {
      switch value {
      case .readOnly: "Change no file of the store, and share its lock with other readers (default)."
      case .readWrite: "Open the store for writing, which creates a missing lock file."
      case .immutable: "Take no lock. Use it only if no program writes to the files in the meantime."
      }
    }
  }

  @Flag(exclusivity: .exclusive) var access: Access?

  /// The access to open the store with.
  var storeAccess: StoreAccess {
    switch access {
    case nil, .readOnly: .readOnly
    case .readWrite: .readWrite
    case .immutable: .immutable
    }
  }
}
