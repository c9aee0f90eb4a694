#if Compression
import Larder
public import LarderFiles

extension CompressionDictionaries {
  /// Where the dictionaries of a store are kept, beside it, unless you choose another place: the command-line tool looks
  /// there.
  ///
  /// - Parameter path: The path of the store, without the name behind `#` that an LMDB store may have in a URL.
  /// - Returns: The path, with `.dictionaries` behind it.
  public static func path(besideStoreAt path: String) -> String {
    var path = path
    // With a slash at its end the file would lie within the folder of the store.
    while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
    return path + ".dictionaries"
  }

  /// Reads the dictionaries that a file holds.
  ///
  /// - Parameters:
  ///   - path: The file. Where there is none, there are no dictionaries yet.
  ///   - fileSystem: Where it is.
  /// - Throws: `StoreError`: `unrecognizedFormat` where the file is no file of dictionaries; `versionMismatch` where a
  ///   newer Larder wrote it; `corrupted` where it is damaged; what the file system throws.
  public static func read(
    fromFile path: String, in fileSystem: some FileSystem = POSIXFileSystem()
  ) async throws -> CompressionDictionaries {
    try await DispatchQueueExecutor(label: "larder.dictionaries").run {
      try failing(during: .open, path: path) {
        try contents(ofFile: path, in: fileSystem)
      }
    }
  }

  /// Adds a dictionary to those that a file holds, and makes it the current one.
  ///
  /// When this returns the dictionary is safe from power loss: only then give it to a codec. The file is replaced as a
  /// whole, so whatever happens it has the dictionaries that it had. Nobody else can add to it at the same time.
  ///
  /// - Parameters:
  ///   - dictionary: The dictionary.
  ///   - path: The file; it is made where it is missing, with permissions 0600. Beside it an empty file stays, its lock.
  ///   - fileSystem: Where it is.
  /// - Returns: All dictionaries that the file holds now.
  /// - Throws: `StoreError`: `conflict` where another dictionary has the same identifier; `locked` where somebody else
  ///   adds one; `full` if the file would have more than 64 MiB; what ``read(fromFile:in:)`` throws; what the file system throws. Unless its outcome is `unknown` the file
  ///   is as it was.
  public static func add(
    _ dictionary: CompressionDictionary, toFile path: String, in fileSystem: some FileSystem = POSIXFileSystem()
  ) async throws -> CompressionDictionaries {
    try await DispatchQueueExecutor(label: "larder.dictionaries").run {
      try failing(during: .addDictionary, path: path) {
        let path = try fileSystem.canonicalPath(of: path)
        let existing = try fileSystem.attributes(at: path)
        guard let lock = try FileLock.acquire(path + ".lock", guarding: existing, in: fileSystem) else {
          throw StoreError(
            .locked, during: .addDictionary, store: path, message: "somebody else adds a dictionary; try again",
            isRetryable: true)
        }
        try fileSystem.removeStaleTemporaryFiles(of: path)
        var dictionaries = try contents(ofFile: path, in: fileSystem)
        try dictionaries.add(dictionary)
        let bytes = DictionaryFile.bytes(of: dictionaries)
        guard bytes.count <= DictionaryFile.maximumSize else {
          throw StoreError(
            .full, during: .addDictionary, store: path,
            message: "a file of dictionaries has at most \(DictionaryFile.maximumSize) bytes; begin another file")
        }
        try fileSystem.replaceFile(at: path, like: existing) { try $0.write(bytes) }
        try lock.release()
        return dictionaries
      }
    }
  }

  private static func contents(
    ofFile path: String, in fileSystem: some FileSystem
  ) throws -> CompressionDictionaries {
    guard let attributes = try fileSystem.attributes(at: path) else { return CompressionDictionaries() }
    guard attributes.kind == .file, attributes.size <= Int64(DictionaryFile.maximumSize) else {
      throw StoreError(
        .unrecognizedFormat, during: .open, store: path,
        message: "this is no file of compression dictionaries, which has at most \(DictionaryFile.maximumSize) bytes")
    }
    let file = try fileSystem.open(path, .read)
    return try DictionaryFile.dictionaries(in: file.readAll(from: 0, upTo: attributes.size), path: path)
  }

  /// Turns what the file system throws into an error that says what was done.
  private static func failing<Result>(
    during operation: StoreOperation, path: String, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as FileError {
      // Closing is what ends the lock, too, when the new file is in place.
      let mayHaveReplaced = [.rename, .synchronizeDirectory, .close].contains(error.operation)
      throw StoreError(
        error, during: operation, store: path,
        message: "the file of dictionaries cannot be \(operation == .open ? "read" : "written")",
        outcome: operation != .open && mayHaveReplaced ? .unknown : .nothingChanged)
    }
  }
}
#endif
