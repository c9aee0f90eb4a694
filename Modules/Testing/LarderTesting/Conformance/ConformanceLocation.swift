#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Synchronization

/// Where a case of the conformance suite keeps the data of one store: a fresh temporary folder, and objects in memory.
///
/// Opening a store at the same location again must find what the first one left. The folder is removed when the case ends.
public final class ConformanceLocation: Sendable {
  /// The path of the folder; it exists and is empty at first.
  public let folder: String

  private let objects = Mutex<[String: any Sendable]>([:])

  /// Makes a location, and its folder.
  ///
  /// - Throws: What the file system throws.
  public init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    folder = url.path(percentEncoded: false)
  }

  /// The path of a file or folder inside ``folder``.
  ///
  /// - Parameter name: Its name.
  public func path(_ name: String) -> String {
    folder + "/" + name
  }

  /// Something in memory that outlives a store: what was made at the first call, at every later one.
  ///
  /// It serves stores whose data are not in files, such as those over a simulated disk.
  ///
  /// - Parameters:
  ///   - name: Tells several things of one location apart; empty unless given.
  ///   - make: Makes it.
  public func object<Object: Sendable>(named name: String = "", make: () throws -> Object) rethrows -> Object {
    let key = "\(Object.self) \(name)"
    return try objects.withLock { objects in
      if let object = objects[key] as? Object { return object }
      let object = try make()
      objects[key] = object
      return object
    }
  }

  /// Copies what is in the folder of another location into this one's.
  ///
  /// - Returns: How many files and folders there were.
  /// - Throws: What the file system throws.
  func takeFiles(of other: ConformanceLocation) throws -> Int {
    var count = 0
    for name in try FileManager.default.contentsOfDirectory(atPath: other.folder) {
      do {
        try FileManager.default.copyItem(atPath: other.path(name), toPath: path(name))
        count += 1
      } catch {
        // What is gone since it was listed was a temporary file of a store that is open.
        if FileManager.default.fileExists(atPath: other.path(name)) { throw error }
      }
    }
    return count
  }

  /// How a file gets another name.
  enum LinkKind: CaseIterable {
    case symbolicLink, hardLink
  }

  /// Makes a location for each file in the folder, with nothing in it but that file under the same name.
  ///
  /// - Throws: What the file system throws.
  func locationsWithOneLink(_ kind: LinkKind) throws -> [ConformanceLocation] {
    try FileManager.default.contentsOfDirectory(atPath: folder).map { name in
      let other = try ConformanceLocation()
      switch kind {
      case .symbolicLink:
        try FileManager.default.createSymbolicLink(atPath: other.path(name), withDestinationPath: path(name))
      case .hardLink: try FileManager.default.linkItem(atPath: path(name), toPath: other.path(name))
      }
      return other
    }
  }

  /// Removes the folder and everything in it.
  ///
  /// - Throws: What the file system throws.
  public func remove() throws {
    objects.withLock { $0 = [:] }
    if FileManager.default.fileExists(atPath: folder) {
      try FileManager.default.removeItem(atPath: folder)
    }
  }
}
