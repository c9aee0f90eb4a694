import Foundation
import Larder
import LarderCompressedFile
import LarderFiles
import LarderJSON
import LarderLMDB
import LarderSQLite

/// The files of a store that did not exist when a verb began, to remove them if the verb writes nothing to the store.
///
/// A full disk often has room for an empty store, but not for its entries.
struct NewStoreFiles {
  /// The paths at which there was nothing.
  ///
  /// It is empty if there was a store, and for a store that keeps no files of its own.
  private let paths: [String]

  /// Finds out which files of a store are missing.
  ///
  /// - Parameter url: The URL of the store.
  /// - Throws: `StoreError` if the text is not a URL or a path cannot be examined.
  init(of url: String) throws {
    do {
      paths = try NewStoreFiles.missingPaths(of: try StoreURL(url))
    } catch let error as FileError {
      throw StoreError(error, during: .open, store: url, message: "the path cannot be examined")
    }
  }

  private static func missingPaths(of url: StoreURL) throws -> [String] {
    let fileSystem = POSIXFileSystem()
    // A new store in an existing database shares its files with others.
    guard let files = try files(of: url), try fileSystem.attributes(at: files.path) == nil else { return [] }
    // A lock file that was left before may be in use.
    let companions = try files.companions.map { files.path + $0.suffix }.filter { path in
      try fileSystem.attributes(at: path) == nil
    }
    return [files.path] + companions
  }

  /// Returns all files of a store, or `nil` if it has none of its own.
  private static func files(of url: StoreURL) throws -> StoreFileSet? {
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

  /// Removes the files, and reports one that cannot be removed.
  ///
  /// Another program that has opened the store in the meantime gets `conflict` for its next write.
  func remove() {
    for path in paths {
      do {
        try FileManager.default.removeItem(atPath: path)
      } catch CocoaError.fileNoSuchFile {
        // The store had no such file.
      } catch {
        Diagnostics.writeLine(
          "larder: \(path) belongs to a new store without entries, and cannot be removed: \(error.localizedDescription)"
        )
      }
    }
  }
}
