public import ArgumentParser
package import Larder
package import LarderMetrics
public import LarderSQLite

/// The store that a verb works on.
package struct StoreArgument: ParsableArguments {
  @Argument(
    help: "The store, such as json:users.json: a scheme, a colon and a location, which needs no escaping.")
  package var url: String
  @Option(help: .codec) package var codec: StoreCodec?
  @OptionGroup package var opening: OpeningOptions

  package init() {}

  package mutating func validate() throws {
    url = try ConfiguredStacks.url(url)
  }

  /// The store, with the options for opening it.
  package var target: StoreTarget { target(layout: nil) }

  /// Returns the store, with the options for opening it.
  ///
  /// - Parameter layout: The table of a new SQLite store; `nil` for an ordinary one.
  package func target(layout: SQLiteTableLayout?) -> StoreTarget {
    opening.target(url, layout: layout, codec: CodecChoice(codec: codec))
  }
}

/// The option of the verbs that can create an SQLite store.
package struct LayoutOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The table of a new sqlite: store. A clustered one suits values below some 500 bytes.",
      valueName: "layout"))
  package var layout: SQLiteTableLayout?

  package init() {}
}

extension SQLiteTableLayout: @retroactive ExpressibleByArgument {}

extension StoreCodec: ExpressibleByArgument {}

extension ArgumentHelp {
  /// The help of an option for the codec of a store that records none.
  package static let codec = ArgumentHelp(
    "The codec of the values of a store that records none: a new store, or one of another program.",
    valueName: "name")
}

/// The options of every verb that opens stores.
package struct CommonOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "How long to wait while another program uses the store, such as 500ms or 1m. 0s does not wait.",
      valueName: "time"))
  package var wait = DurationArgument(.seconds(5))
  @Flag(
    name: .customLong("metrics"),
    help: "Report the operations on the store on standard error, with their counts and latencies.")
  package var reportsMetrics = false

  package init() {}

  /// Returns a store with these options, without keys and without a layout.
  ///
  /// - Parameters:
  ///   - url: The URL of the store.
  ///   - codec: The codec of a store that records none. Defaults to no choice.
  package func target(_ url: String, codec: CodecChoice = CodecChoice()) -> StoreTarget {
    StoreTarget(
      url: url, timeout: wait.duration, codec: codec,
      meter: reportsMetrics ? StoreMeter(name: url, logger: nil) : nil)
  }
}

/// The options of every verb that opens a store and may need the keys of its values.
package struct OpeningOptions: ParsableArguments {
  @OptionGroup package var common: CommonOptions
  @Option(
    help: ArgumentHelp(
      "The keys of encrypted values: \(KeyRingLocation.kinds). A new store is then encrypted.", valueName: "ring"))
  package var keyRing: KeyRingLocation?
  @Option(help: ArgumentHelp("The purpose that the encrypted values are bound to.", valueName: "name"))
  package var purpose: String?
  @Option(help: .passwordFile) package var passwordFile: String?

  package init() {}

  package func validate() throws {
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
  package func target(
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
package struct StoreTarget: Sendable {
  /// The URL of the store.
  package let url: String
  /// How long opening the store, and each write, waits while another program uses the store.
  package let timeout: Duration
  /// The keys of the store's values, as options name them.
  ///
  /// Defaults to `nil`, for none.
  package var encryption: EncryptionChoice?
  /// The table of a new SQLite store; `nil`, the default, for an ordinary one.
  package var layout: SQLiteTableLayout?
  /// The codec of a store that records none.
  ///
  /// Defaults to no choice.
  package var codec = CodecChoice()
  /// A Boolean value that indicates whether a damaged store also has entries that may have been replaced by newer ones,
  /// or removed.
  ///
  /// Defaults to `false`.
  package var findsPossiblyOlder = false
  /// A Boolean value that indicates whether an existing LMDB store is read page by page, so no damage ends the process.
  ///
  /// Defaults to `false`.
  package var examinesPages = false
  /// The meter of the store's operations; `nil` to measure nothing.
  package let meter: StoreMeter?
}

/// The codec of the values of a store that records none, as an option names it.
package struct CodecChoice: Sendable {
  /// The codec, or `nil` for the usual one of a new store.
  package let codec: StoreCodec?
  /// The name of the option.
  package let option: String

  /// Creates a choice.
  ///
  /// - Parameters:
  ///   - codec: The codec. Defaults to `nil`, for the usual one of a new store.
  ///   - option: The name of the option. Defaults to `--codec`.
  package init(codec: StoreCodec? = nil, option: String = "--codec") {
    (self.codec, self.option) = (codec, option)
  }
}

/// A codec that the tool can give to a store that records none.
package enum StoreCodec: String, CaseIterable {
  case json
  case cbor
  case raw
}

/// The access of a verb that only reads its store.
package struct AccessOption: ParsableArguments {
  /// The flags, which exclude each other.
  package enum Access: EnumerableFlag {
    case readOnly
    case readWrite
    case immutable

    package static func help(for value: Access) -> ArgumentHelp? {
      switch value {
      case .readOnly: "Change no file of the store, and share its lock with other readers (default)."
      case .readWrite: "Open the store for writing, which creates a missing lock file."
      case .immutable: "Take no lock. Use it only if no program writes to the files in the meantime."
      }
    }
  }

  @Flag(exclusivity: .exclusive) package var access: Access?

  /// The access to open the store with.
  package var storeAccess: StoreAccess {
    switch access {
    case nil, .readOnly: .readOnly
    case .readWrite: .readWrite
    case .immutable: .immutable
    }
  }

  package init() {}
}
