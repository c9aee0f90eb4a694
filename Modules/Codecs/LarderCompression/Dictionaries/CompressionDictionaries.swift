#if Compression
public import Larder
public import LarderFiles

/// The dictionaries of a store: the current one, which compresses values, and the older ones, which decompress older
/// values.
///
/// Each compressed value names its dictionary. After you add another one, older values remain readable, and they are
/// compressed with the new one when they are next written.
///
/// ```swift
/// let file = CompressionDictionaries.path(besideStoreAt: folder + "/users")
/// let dictionary = try CompressionDictionary.train(on: samples, codec: .cbor(User.self))
/// let dictionaries = try await CompressionDictionaries.add(dictionary, toFile: file)
/// let users = try await LMDBStore<User>(
///   path: folder + "/users", codec: .cbor(User.self).compressed(dictionaries: dictionaries))
/// ```
public struct CompressionDictionaries: Sendable, Hashable {
  /// The dictionaries, oldest first.
  public private(set) var all: [CompressionDictionary] = []

  /// The path of the file that the dictionaries were read from, for errors, or `nil`.
  public private(set) var path: String?

  /// Creates an empty set, with which values are compressed without a dictionary.
  public init() {}

  /// Creates a set of one dictionary, or an empty set.
  init(only dictionary: CompressionDictionary?) {
    all = dictionary.map { [$0] } ?? []
  }

  /// Creates a set of dictionaries.
  ///
  /// ```swift
  /// let dictionaries = try CompressionDictionaries([CompressionDictionary(bytes)])
  /// ```
  ///
  /// - Parameter dictionaries: The dictionaries, oldest first. If one occurs twice, its last position counts.
  /// - Throws: The errors of ``add(_:)``.
  public init(_ dictionaries: some Sequence<CompressionDictionary>) throws(StoreError) {
    for dictionary in dictionaries { try add(dictionary) }
  }

  /// The latest dictionary, which compresses values.
  public var current: CompressionDictionary? { all.last }

  /// Returns the dictionary with an identifier, or `nil` if there isn't one.
  public subscript(id: CompressionDictionary.ID) -> CompressionDictionary? {
    // Most values were compressed with the current one.
    if let current, current.id == id { return current }
    return all.last { $0.id == id }
  }

  /// Adds a dictionary and makes it the current one.
  ///
  /// If it is already present, it becomes the current one.
  ///
  /// - Parameter dictionary: The dictionary to add.
  /// - Throws: `StoreError` with `conflict` if another dictionary has the same identifier. This happens to one in
  ///   65,536. In this case, train it again to another size or on other samples.
  public mutating func add(_ dictionary: CompressionDictionary) throws(StoreError) {
    if let other = self[dictionary.id] {
      guard other == dictionary else {
        throw StoreError(
          .conflict, during: .addDictionary,
          message:
            "another dictionary already has the identifier \(dictionary.id); train this one again to another size")
      }
      all.removeAll { $0 == dictionary }
    }
    all.append(dictionary)
  }
}

extension CompressionDictionaries {
  /// Returns whether two sets have the same dictionaries in the same order, wherever they were read.
  public static func == (left: CompressionDictionaries, right: CompressionDictionaries) -> Bool {
    left.all == right.all
  }

  /// Hashes the dictionaries.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(all)
  }
}

extension CompressionDictionaries: CustomStringConvertible {
  /// The identifiers, oldest first.
  public var description: String {
    "CompressionDictionaries(\(all.map(\.id.description).joined(separator: ", ")))"
  }
}

extension CompressionDictionaries {
  /// Returns the default path of the file that holds the dictionaries of a store.
  ///
  /// The command-line tool looks there.
  ///
  /// - Parameter path: The path of the store, without the name after `#` that an LMDB store may have in a URL.
  /// - Returns: The path of the store, followed by `.dictionaries`.
  public static func path(besideStoreAt path: String) -> String {
    var path = path
    // With a trailing slash, the file would be inside the folder of the store.
    while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
    return path + StoreFileSet.dictionariesSuffix
  }

  /// Reads the dictionaries from a file.
  ///
  /// ```swift
  /// let file = CompressionDictionaries.path(besideStoreAt: folder + "/users")
  /// let dictionaries = try await CompressionDictionaries.read(fromFile: file)
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the file. If the file is missing, there are no dictionaries yet.
  ///   - fileSystem: The file system of the file. Defaults to the real one.
  /// - Throws: `StoreError`: `unrecognizedFormat` if it is not a dictionary file; `versionMismatch` if a newer version
  ///   of Larder wrote it; `corrupted` if it is damaged; or an error of the file system.
  public static func read(
    fromFile path: String, in fileSystem: some StoreFileSystem = POSIXFileSystem()
  ) async throws -> CompressionDictionaries {
    try await DispatchQueueExecutor(label: "larder.dictionaries").run {
      try failing(during: .open, path: path) {
        var dictionaries = try contents(ofFile: path, in: fileSystem)
        dictionaries.path = path
        return dictionaries
      }
    }
  }

  /// Adds a dictionary to a file and makes it the current one.
  ///
  /// Give the dictionary to a codec only after this method has returned, because only then does it survive power loss.
  /// The file is replaced as a whole, so it never loses the dictionaries that it had. A lock prevents concurrent
  /// additions.
  ///
  /// - Parameters:
  ///   - dictionary: The dictionary to add.
  ///   - path: The path of the file. A missing file is created with permissions 0600. An empty lock file remains beside
  ///     it.
  ///   - fileSystem: The file system of the file. Defaults to the real one.
  /// - Returns: All dictionaries that the file now holds.
  /// - Throws: `StoreError`: `conflict` if another dictionary has the same identifier; `locked` if another caller is
  ///   adding a dictionary; `full` if the file would exceed 64 MiB; the errors of ``read(fromFile:in:)``; or an error
  ///   of the file system. The file is unchanged, unless the outcome of the error is `unknown`.
  public static func add(
    _ dictionary: CompressionDictionary, toFile path: String, in fileSystem: some StoreFileSystem = POSIXFileSystem()
  ) async throws -> CompressionDictionaries {
    try await DispatchQueueExecutor(label: "larder.dictionaries").run {
      try failing(during: .addDictionary, path: path) {
        let path = try fileSystem.canonicalPath(of: path)
        let existing = try fileSystem.attributes(at: path)
        guard let lock = try FileLock.acquire(path + ".lock", guarding: existing, in: fileSystem) else {
          throw StoreError(
            .locked, during: .addDictionary, store: path,
            message: "another process or task is adding a dictionary; try again later",
            isRetryable: true)
        }
        try fileSystem.removeStaleTemporaryFiles(of: path)
        var dictionaries = try contents(ofFile: path, in: fileSystem)
        try dictionaries.add(dictionary)
        let bytes = DictionaryFile.bytes(of: dictionaries)
        guard bytes.count <= DictionaryFile.maximumSize else {
          throw StoreError(
            .full, during: .addDictionary, store: path,
            message: "a dictionary file can have at most \(DictionaryFile.maximumSize) bytes; begin another file")
        }
        try fileSystem.replaceFile(at: path, like: existing) { try $0.write(bytes) }
        try lock.release()
        return dictionaries
      }
    }
  }

  private static func contents(
    ofFile path: String, in fileSystem: some StoreFileSystem
  ) throws -> CompressionDictionaries {
    guard let attributes = try fileSystem.attributes(at: path) else { return CompressionDictionaries() }
    guard attributes.kind == .file, attributes.size <= Int64(DictionaryFile.maximumSize) else {
      throw StoreError(
        .unrecognizedFormat, during: .open, store: path,
        message: "this is not a dictionary file, which has at most \(DictionaryFile.maximumSize) bytes")
    }
    let file = try fileSystem.open(path, .read)
    return try DictionaryFile.dictionaries(in: file.readAll(from: 0, upTo: attributes.size), path: path)
  }

  /// Converts the errors of the file system to errors that name the operation.
  private static func failing<Result>(
    during operation: StoreOperation, path: String, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as FileError {
      // Closing the file also releases the lock, after the new file is in place.
      let mayHaveReplaced = [.rename, .synchronizeDirectory, .close].contains(error.operation)
      throw StoreError(
        error, during: operation, store: path,
        message: "the dictionary file could not be \(operation == .open ? "read" : "written")",
        outcome: operation != .open && mayHaveReplaced ? .unknown : .nothingChanged)
    }
  }
}

/// An error that reports a value that was compressed with a dictionary that its codec does not have.
///
/// The value is not lost. You can read it again with a codec that has the dictionary.
public struct MissingDictionaryError: RedactedError, Hashable {
  /// The identifier of the missing dictionary.
  public let id: CompressionDictionary.ID

  /// The identifiers of the dictionaries that the codec has, oldest first.
  public let availableIDs: [CompressionDictionary.ID]

  /// The path of the file that the dictionaries of the codec were read from, or `nil` if they were not read from a
  /// file.
  public var path: String?
}

extension MissingDictionaryError: StoreErrorConvertible {
  /// `undecodable`, because the value is sound.
  public var storeErrorCode: StoreError.Code { .undecodable }
}

extension MissingDictionaryError: CustomStringConvertible {
  /// A description that names the missing dictionary and the available ones.
  public var description: String {
    let available = availableIDs.map(\.description).joined(separator: ", ")
    if let path {
      return "its dictionary \(id) is missing (\(path)\(available.isEmpty ? "" : " has only \(available)")); put the "
        + "file of dictionaries that belongs to the store at this path"
    }
    return
      "the value was compressed with the dictionary \(id), and \(available.isEmpty ? "none" : "only \(available)") "
      + "is available; open the store with all dictionaries that it was written with"
  }
}
#endif
