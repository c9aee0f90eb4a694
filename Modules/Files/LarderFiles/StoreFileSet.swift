public import Larder

/// All files of a store at a path: the data file or folder, and its companions beside it.
///
/// Each format lists its companions in one place. Creation, backups, restoring and the checks of an open store use that
/// list, because a store that takes up the journal of another one is damaged or has the wrong entries.
///
/// ```swift
/// let files = StoreFileSet(
///   at: path, companions: [.init(suffix: ".journal", role: .content, summary: "the journal of a document")])
/// try files.checkFree(during: .backup, store: name, in: fileSystem)
/// ```
public struct StoreFileSet: Sendable, Hashable {
  /// A file beside the data file or folder of a store.
  public struct Companion: Sendable, Hashable {
    /// The meaning of a companion for a new store at the path.
    public enum Role: Sendable, Hashable {
      /// The file holds changes, or the state of programs that have the store open. A new store would take it up.
      case content
      /// A lock file that stays after use and says nothing unless a program holds its lock; see ``FileLock``.
      case lock
    }

    /// The text that follows the path of the store, such as `-wal`.
    public var suffix: String

    /// The meaning of the file for a new store.
    public var role: Role

    /// A noun phrase for error messages, such as "the write-ahead log of a database".
    public var summary: String

    /// Creates a companion.
    ///
    /// - Parameters:
    ///   - suffix: The text that follows the path of the store.
    ///   - role: The meaning of the file for a new store.
    ///   - summary: A noun phrase for error messages.
    public init(suffix: String, role: Role, summary: String) {
      self.suffix = suffix
      self.role = role
      self.summary = summary
    }
  }

  /// The text that follows the path of a store in the path of its compression dictionaries, `.dictionaries`.
  ///
  /// Stores of all formats can have dictionaries. Backups take them along.
  public static let dictionariesSuffix = ".dictionaries"

  /// The text that follows the path of a store in the path of its ``FileLock``, `.lock`.
  public static let lockSuffix = ".lock"

  /// The maximum size of a file of dictionaries, in bytes.
  static let maximumDictionariesSize: Int64 = 64 << 20

  /// The path of the data file or folder, without a slash at its end.
  public let path: String

  /// The companions, without the dictionaries.
  public let companions: [Companion]

  /// The names of the files in the folder of the store, the one with the data first.
  ///
  /// Empty for a store that is a file, and for a folder where the names change.
  public let contents: [String]

  /// Creates the list of the files of a store.
  ///
  /// - Parameters:
  ///   - path: The path of the data file or folder.
  ///   - companions: The companions of the format. Defaults to an empty list, for a folder that holds all files.
  ///   - contents: The names of the files in the folder, the one with the data first. Defaults to an empty list, for a store that is
  ///     a file, and for a folder where the names change.
  public init(at path: String, companions: [Companion] = [], contents: [String] = []) {
    let (folder, name) = FilePaths.split(path)
    // A relative path stays as it was written.
    self.path = name.isEmpty || !path.utf8.contains(UInt8(ascii: "/")) ? path : FilePaths.join(folder, name)
    self.companions = companions
    self.contents = contents
  }

  /// The path of the file with the data.
  ///
  /// It is in the folder of the store if the store is one with fixed names.
  public var dataPath: String { contents.first.map { FilePaths.join(path, $0) } ?? path }

  /// The paths of all files, without the dictionaries, in an order in which they can be removed.
  ///
  /// The path of the store itself is last. It is that of a folder if the store is one.
  public var paths: [String] {
    contents.map { FilePaths.join(path, $0) } + companions.map { path + $0.suffix } + [path]
  }

  /// The path of the compression dictionaries.
  public var dictionariesPath: String { path + StoreFileSet.dictionariesSuffix }

  /// Returns whether a path leads to a file of the store.
  ///
  /// - Parameter path: The path. It is compared byte by byte.
  /// - Returns: A Boolean value that indicates whether it is that of the data, of a companion or of the dictionaries.
  public func contains(_ path: String) -> Bool {
    ([self.path, dictionariesPath] + companions.map { self.path + $0.suffix }).contains {
      $0.utf8.elementsEqual(path.utf8)
    }
  }

  /// Returns the first companion that a new store would take up, and its path.
  ///
  /// - Parameter fileSystem: The file system.
  /// - Returns: The companion, or `nil` if there isn't one. Lock files do not count.
  /// - Throws: ``FileError``.
  public func firstContent(
    in fileSystem: some StoreFileSystem
  ) throws(FileError) -> (companion: Companion, path: String)? {
    for companion in companions where companion.role == .content {
      let path = path + companion.suffix
      if try fileSystem.attributes(at: path) != nil { return (companion, path) }
    }
    return nil
  }

  /// Throws an error if a new store cannot be written at the path, because a file of another one is there.
  ///
  /// - Parameters:
  ///   - operation: The operation that writes the store.
  ///   - store: The name of the store in errors.
  ///   - fileSystem: The file system.
  /// - Throws: `StoreError`: `invalidArgument` if the data or a companion exists; `locked` if a program holds the lock
  ///   of a store that was at the path. ``FileError``.
  public func checkFree(during operation: StoreOperation, store: String, in fileSystem: some StoreFileSystem) throws {
    guard try fileSystem.attributes(at: path) == nil else { throw existsError(during: operation, store: store) }
    if let (companion, path) = try firstContent(in: fileSystem) {
      throw StoreError(
        .invalidArgument, during: operation, store: store,
        message: "\(path), \(companion.summary), already exists, and the new store would take it up; move it away "
          + "together with the store that it belongs to, or choose another path")
    }
    for companion in companions where companion.role == .lock {
      let path = path + companion.suffix
      guard try fileSystem.attributes(at: path) != nil else { continue }
      guard let lock = try FileLock.acquire(path, .shared, in: fileSystem) else {
        throw StoreError(
          .locked, during: operation, store: store,
          message:
            "\(path) is locked by a program that has the store open that was at this path; end the program first",
          isRetryable: true)
      }
      try lock.release()
    }
  }

  /// Returns the error that something exists at the path.
  func existsError(during operation: StoreOperation, store: String) -> StoreError {
    StoreError(
      .invalidArgument, during: operation, store: store,
      message: "\(path) already exists; move it away first, or choose another path")
  }

  // MARK: Dictionaries

  /// Returns the content of the dictionaries, or `nil` if there aren't any.
  ///
  /// - Throws: `StoreError` with `unsupported` if the file is larger than any file of dictionaries; ``FileError``.
  func dictionaries(
    during operation: StoreOperation, store: String, in fileSystem: some StoreFileSystem
  ) throws -> [UInt8]? {
    guard let attributes = try fileSystem.attributes(at: dictionariesPath) else { return nil }
    guard attributes.kind == .file, attributes.size <= StoreFileSet.maximumDictionariesSize else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "\(dictionariesPath) is not a file of compression dictionaries, which has at most "
          + "\(StoreFileSet.maximumDictionariesSize) bytes; move it away")
    }
    return try fileSystem.open(dictionariesPath, .read).readAll(from: 0, upTo: attributes.size)
  }
}
