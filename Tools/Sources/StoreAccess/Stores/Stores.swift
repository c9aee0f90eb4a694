import Foundation
package import Larder
import LarderCompressedFile
import LarderCompression
import LarderCrypto
package import LarderFiles
import LarderJSON
import LarderLMDB
package import LarderPostgres
package import LarderQueue
import LarderSQLite

/// The stores that the tool can open.
package enum Stores {
  /// The kinds of store, by scheme.
  package static let registry = StoreRegistry(providers: [
    MemoryStoreProvider(), JSONFileStoreProvider(), CompressedFileStoreProvider(), LMDBStoreProvider(),
    SQLiteStoreProvider(), PostgresStoreProvider(), postgresQueueProvider, queueProvider,
  ])

  /// The provider of queues in PostgreSQL, in which the tool keeps items as they are, to the last digit.
  package static let postgresQueueProvider = PostgresQueueProvider(codecName: JSONTextCodec().name)

  /// The provider of the stores that are queues.
  package static let queueProvider = ReportingQueueProvider()

  /// Returns the provider of a store, with the options that only some kinds of store have.
  ///
  /// - Parameters:
  ///   - url: The URL of the store.
  ///   - target: The options.
  /// - Throws: ``CommandFailure`` if the scheme is unknown, or an option is not for stores of this scheme.
  package static func provider(for url: StoreURL, _ target: StoreTarget) throws -> any StoreProvider {
    let compressed = CompressedFileStoreProvider(findsPossiblyOlder: target.findsPossiblyOlder)
    let lmdb = LMDBStoreProvider(
      busyTimeout: target.timeout, examinesPages: target.examinesPages, findsPossiblyOlder: target.findsPossiblyOlder)
    let sqlite = SQLiteStoreProvider(layout: target.layout ?? .ordinary, busyTimeout: target.timeout)
    guard target.layout == nil || url.scheme == sqlite.scheme else {
      throw CommandFailure(
        .usage, "\(url) has no table", advice: "Omit --layout, which is for \(sqlite.scheme): stores.")
    }
    guard !target.findsPossiblyOlder || [compressed.scheme, lmdb.scheme].contains(url.scheme) else {
      throw CommandFailure(
        .usage, "\(url) has no entries that may be older",
        advice: "Omit --possibly-older, which is for \(compressed.scheme): and \(lmdb.scheme): stores.")
    }
    switch url.scheme {
    case compressed.scheme: return compressed
    case lmdb.scheme: return lmdb
    case sqlite.scheme: return sqlite
    default: break
    }
    if let provider = registry.providers.first(where: { $0.scheme == url.scheme }) { return provider }
    let known = registry.providers.map { "\($0.scheme):" }.joined(separator: ", ")
    throw CommandFailure(.usage, "unknown scheme \(url.scheme):", advice: "The schemes are \(known).")
  }

  /// A file, a folder or a database that holds several stores, opened without its stores.
  package struct Collection {
    /// Returns the names of the stores.
    package let storeNames: @Sendable () async throws -> [String]
    /// Returns the URL of a store by its name.
    package let url: @Sendable (_ name: String) -> String
    package let close: @Sendable () async throws -> Void
  }

  /// Opens an LMDB environment, an SQLite database or a PostgreSQL database.
  ///
  /// - Parameters:
  ///   - target: The environment or database, or a store in it.
  ///   - access: The access to its files.
  /// - Throws: ``CommandFailure`` if the URL is one of another kind of store; the errors of opening the files.
  package static func openCollection(_ target: StoreTarget, access: StoreAccess) async throws -> Collection {
    let url = try StoreURL(target.url)
    if url.scheme == PostgresStoreProvider().scheme {
      let location = try PostgresLocation(url)
      let database = try await location.open(access: access)
      return Collection(storeNames: database.storeNames, url: location.url(named:), close: database.close)
    }
    let path = try path(of: url)
    switch url.scheme {
    case LMDBStoreProvider().scheme:
      let environment = try await LMDBEnvironment(path: path, access: access, createsIfMissing: false)
      return Collection(
        storeNames: environment.storeNames, url: { "\(url.scheme):\(path)#\($0)" }, close: environment.close)
    case SQLiteStoreProvider().scheme:
      let database = try await SQLiteDatabase(
        path: path, access: access, createsIfMissing: false, busyTimeout: target.timeout)
      return Collection(
        storeNames: database.storeNames, url: { "\(url.scheme):\(path)#\($0)" }, close: database.close)
    default:
      throw CommandFailure(
        .usage, "\(url) is no LMDB environment, SQLite database or PostgreSQL database",
        advice: "Other kinds of store hold one store at each location.")
    }
  }

  /// Returns the codecs for the values of a store, with the dictionaries beside it if its values are compressed.
  ///
  /// - Parameters:
  ///   - name: The name of the store's codec.
  ///   - url: The URL of the store.
  ///   - keys: The keys of encrypted values; `nil` for none.
  /// - Throws: The errors of reading the dictionaries.
  package static func codecs(for name: CodecName, of url: StoreURL, with keys: ValueKeys?) async throws -> ValueCodecs {
    // There are no files beside a database of a server.
    let isOfServer = [PostgresStoreProvider().scheme, postgresQueueProvider.scheme].contains(url.scheme)
    guard name.transforms.contains(.compression), !isOfServer else {
      return ValueCodecs(keys: keys)
    }
    let path = CompressionDictionaries.path(besideStoreAt: try path(of: url))
    return ValueCodecs(dictionaries: try await .read(fromFile: path), keys: keys)
  }

  /// Refuses to write plain values if the caller gave keys for a store whose values are not encrypted.
  ///
  /// - Parameters:
  ///   - name: The name of the store's codec.
  ///   - url: The URL of the store.
  ///   - keys: The keys of encrypted values; `nil` for none.
  ///   - options: The options with which the store was opened.
  /// - Throws: ``CommandFailure``.
  package static func checkEncryption(
    of name: CodecName, in url: StoreURL, with keys: ValueKeys?, options: StoreOptions
  ) throws {
    guard keys != nil, !name.isEncrypted, options.createsIfMissing else { return }
    throw CommandFailure(
      .usage, "the values of \(url) are not encrypted, because it was created without --key-ring",
      advice: "Copy it to a new store with --key-ring, or omit --key-ring; the store was left unchanged.")
  }

  /// Refuses to write with a key ring or a purpose that cannot read the values that are there.
  ///
  /// Programs that use the store could not read such values.
  ///
  /// - Parameters:
  ///   - keys: The keys of encrypted values; `nil` for none.
  ///   - store: The store, with a codec that uses the keys.
  ///   - options: The options with which the store was opened.
  /// - Throws: ``StoreError`` with `keyUnavailable` or `corrupted` if the keys read none of the first values; the errors of
  ///   reading the store.
  package static func checkKeys(_ keys: ValueKeys?, fit store: some DataStore, options: StoreOptions) async throws {
    guard keys != nil, options.createsIfMissing else { return }
    var failure: StoreError?
    // Several, because some may be damaged.
    for key in try await store.keys(in: .all, limit: 8, order: .ascending) {
      do {
        _ = try await store.value(forKey: key)
        return
      } catch let error as StoreError where error.isValueUnreadable {
        failure = error
      }
    }
    if let failure { throw failure }
  }

  /// Opens a store of bytes, in which a queue or an HTTP cache has its entries.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - user: The kind of thing that is in the store, for errors, such as "a queue in a store".
  ///   - options: The options for opening the store.
  /// - Throws: ``CommandFailure`` if the store has values of another kind, or is to be written without encryption although
  ///   there are keys; the errors of opening the store.
  package static func bytes(
    in target: StoreTarget, for user: String, options: StoreOptions
  ) async throws -> AnyDataStore<[UInt8]> {
    let url = try StoreURL(target.url)
    let keys = try await target.encryption?.valueKeys()
    let newName = CodecName(RawCodec().name)
    let untyped = try await open(
      url, target, options: options, chosenName: "\(newName)", newName: keys == nil ? newName : newName.withEncryption)
    let name = CodecName(untyped.codecName)
    guard let codec = try await codecs(for: name, of: url, with: keys).bytesCodec(named: untyped.codecName)
    else {
      throw CommandFailure(
        .badData, "\(url) was written with the codec \(name), but \(user) needs the codec \(newName)",
        advice: "Give another store; this one was left unchanged.")
    }
    try checkEncryption(of: name, in: url, with: keys, options: options)
    let bytes = try await untyped.typed(codec: codec)
    try await checkKeys(keys, fit: bytes, options: options)
    return bytes
  }

  /// Returns the path of a store's file or folder.
  ///
  /// - Throws: `StoreError` if the URL is one of an LMDB or SQLite store, and its path is ambiguous.
  private static func path(of url: StoreURL) throws -> String {
    // The location of such a store ends with its name.
    let (lmdb, sqlite) = (LMDBStoreProvider(), SQLiteStoreProvider())
    switch url.scheme {
    case lmdb.scheme: return try lmdb.environmentPath(of: url)
    case sqlite.scheme: return try sqlite.databasePath(of: url)
    default: return url.location
    }
  }

  /// Returns all files of a store, or `nil` if it doesn't have one of its own or they have no fixed names, as in a
  /// queue.
  ///
  /// - Throws: `StoreError` if the URL is one of an LMDB or SQLite store, and its path is ambiguous; `FileError` if the path
  ///   cannot be examined.
  package static func files(of url: StoreURL) throws -> StoreFileSet? {
    let (json, compressed) = (JSONFileStoreProvider(), CompressedFileStoreProvider())
    let (lmdb, sqlite) = (LMDBStoreProvider(), SQLiteStoreProvider())
    return switch url.scheme {
    case json.scheme: json.files(of: url)
    case compressed.scheme: compressed.files(of: url)
    case lmdb.scheme: try lmdb.files(of: url)
    case sqlite.scheme: try sqlite.files(of: url)
    default: nil
    }
  }

  /// Returns all files of a store of one kind at a path.
  ///
  /// - Parameters:
  ///   - path: The path. It may contain `#`.
  ///   - scheme: The scheme of the kind.
  /// - Throws: `StoreError` or `FileError` if the path cannot be examined.
  package static func files(at path: String, scheme: String) throws -> StoreFileSet {
    // The location of such a store ends with its name.
    let hasNames = [LMDBStoreProvider().scheme, SQLiteStoreProvider().scheme].contains(scheme)
    return try files(of: StoreURL(scheme: scheme, location: path + (hasNames ? "#default" : "")))
      ?? StoreFileSet(at: path)
  }

  /// Returns the absolute path of a store's file or folder, without symbolic links.
  ///
  /// - Parameter url: The URL of the store.
  /// - Throws: `StoreError` if the text is not a URL, or the path is ambiguous.
  package static func absolutePath(of url: String) throws -> String {
    URL(filePath: try path(of: try StoreURL(url))).resolvingSymlinksInPath().path
  }

  /// Returns whether two stores are in the same LMDB environment or SQLite database, which a process can open with one
  /// access only.
  package static func shareFiles(_ one: String, _ other: String) throws -> Bool {
    let urls = [try StoreURL(one), try StoreURL(other)]
    guard urls[0].scheme == urls[1].scheme,
      [LMDBStoreProvider().scheme, SQLiteStoreProvider().scheme].contains(urls[0].scheme)
    else { return false }
    return try absolutePath(of: one) == absolutePath(of: other)
  }

  /// Returns whether two URLs name one store in an LMDB environment, an SQLite database or a PostgreSQL database.
  ///
  /// - Throws: The errors of connecting to PostgreSQL.
  package static func areSameSharedStore(_ one: String, _ other: String) async throws -> Bool {
    let postgresSchemes = [PostgresStoreProvider().scheme, postgresQueueProvider.scheme]
    let urls = [try StoreURL(one), try StoreURL(other)]
    if urls.allSatisfy({ postgresSchemes.contains($0.scheme) }) {
      let locations = try urls.map { try PostgresLocation($0) }
      // As the server compares names, byte by byte.
      guard locations[0].name?.utf8.elementsEqual(locations[1].name?.utf8 ?? "".utf8) == true else { return false }
      return try await postgresPlace(locations[0]) == postgresPlace(locations[1])
    }
    guard try shareFiles(one, other) else { return false }
    let names = try [one, other].map { text in
      let url = try StoreURL(text)
      let path = try path(of: url)
      // The path has no name, or `#` and a name after it.
      return url.location.utf8.count > path.utf8.count ? String(url.location.dropFirst(path.count + 1)) : "default"
    }
    return names[0] == names[1]
  }

  /// Returns what distinguishes databases, which connections can name in several ways: the start of the server to the
  /// microsecond, the name, and the schema.
  private static func postgresPlace(_ location: PostgresLocation) async throws -> [[String: String]] {
    let database = try await location.open(access: .readOnly)
    do {
      let place = try await database.read { transaction in
        try await transaction.execute(
          "SELECT pg_postmaster_start_time()::text AS start, current_database()::text AS name, current_schema()::text AS schema"
        )
      }
      await database.close()
      return place
    } catch {
      await database.close()
      throw error
    }
  }

  /// The kinds of store for the help, one in each line.
  package static var listing: String {
    registry.providers.map { provider in
      let scheme = "\(provider.scheme):"
      return "  \(scheme)\(String(repeating: " ", count: max(1, 12 - scheme.count)))\(provider.summary)"
    }.joined(separator: "\n")
  }
}

/// A provider of queues that reports damage and each item that becomes a dead letter on standard error.
///
/// A damaged queue serves its readable items. A program can ask the queue for the damage, but a user of the tool would
/// take those items for all of them.
package struct ReportingQueueProvider: StoreProvider {
  // The queues that the tool creates hold JSON, so that an item comes out unchanged, to the last digit.
  private let base = QueueStoreProvider(
    codecName: JSONTextCodec().name, onDeadLetter: { Diagnostics.writeLine("larder: \($0.key): \($0)") })

  package var scheme: String { base.scheme }
  package var summary: String { base.summary }

  package var codecName: String { base.codecName }

  package func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) async throws -> UntypedQueue {
    let queue = try await base.open(url, options: options, newCodecName: newCodecName)
    if let damage = Self.text(of: queue.recovery) {
      Diagnostics.writeLine(
        "larder: \(url) is damaged: \(damage). All other items are available; run `larder verify` for details.")
    }
    return queue
  }

  /// Returns a description of the damage, or `nil` if there isn't one.
  package static func text(of report: RecoveryReport) -> String? {
    var parts: [String] = []
    if report.damagedPlaces > 0 {
      let places = report.damagedPlaces == 1 ? "1 place" : "\(report.damagedPlaces) places"
      parts.append("\(report.damagedBytes) bytes in \(places) cannot be read")
    }
    if report.missingSegments > 0 {
      parts.append(report.missingSegments == 1 ? "1 file is missing" : "\(report.missingSegments) files are missing")
    }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }
}

/// Retries to open a store while another program has it open, up to a timeout.
///
/// The kernel sends no notification when a lock is released, so this polls, with growing pauses.
package struct LockWait {
  private static let longestPause = Duration.milliseconds(50)

  private let timeout: Duration

  /// Creates a wait.
  ///
  /// - Parameter timeout: The time after which it gives up. It tries at least once.
  package init(upTo timeout: Duration) {
    self.timeout = timeout
  }

  /// Calls a closure until it succeeds or the timeout has passed.
  ///
  /// - Parameter open: Opens the store.
  /// - Returns: The result of `open`.
  /// - Throws: The error of `open`; ``StoreError`` with `locked` during opening only after the timeout.
  package func run<Result>(_ open: () async throws -> Result) async throws -> Result {
    let clock = ContinuousClock()
    let deadline = clock.now.advanced(by: timeout)
    var pause = Duration.milliseconds(1)
    while true {
      do {
        return try await open()
      } catch let error as StoreError {
        let left = clock.now.duration(to: deadline)
        guard error.code == .locked, error.operation == .open, left > .zero else { throw error }
        // A random part of the pause, so that of many waiting processes none is too late every time.
        let part = pause * Double.random(in: 0.5...1)
        try await clock.sleep(for: min(part, left))
      }
      pause = min(pause * 2, LockWait.longestPause)
    }
  }
}
