import Foundation
import Larder
import LarderFiles
import StoreAccess

/// The files of a store that did not exist when a verb began, to remove them if the verb writes nothing to the store.
///
/// A full disk often has room for an empty store, but not for its entries.
struct NewStoreFiles {
  /// The paths at which there was nothing, the folder of the store last.
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
    guard let files = try Stores.files(of: url) else { return [] }
    // A new store in an existing database shares its files with others.
    guard try fileSystem.attributes(at: files.dataPath) == nil else { return [] }
    // A lock file or a folder that was there before may be in use.
    return try files.paths.filter { try fileSystem.attributes(at: $0) == nil }
  }

  /// Removes the files, and reports one that cannot be removed.
  ///
  /// A folder stays if there are files of others in it by now. Another program that has opened the store in the meantime gets
  /// `conflict` for its next write.
  func remove() {
    let fileSystem = POSIXFileSystem()
    for path in paths {
      do throws(FileError) {
        guard let attributes = try fileSystem.attributesWithoutFollowing(at: path) else { continue }
        if attributes.kind == .directory, try !fileSystem.contentsOfDirectory(at: path).isEmpty { continue }
        try fileSystem.removeFile(at: path)
      } catch {
        Diagnostics.writeLine("larder: \(path) belongs to a new store without entries, and cannot be removed: \(error)")
      }
    }
  }
}
