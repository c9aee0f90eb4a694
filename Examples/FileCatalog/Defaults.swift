import Foundation

/// What the program works on where nothing is said.
enum Defaults {
  /// How many entries make a folder worth looking at.
  private static let enoughEntries = 10_000

  /// A large folder that is there on every machine with Swift.
  ///
  /// It is that of the toolchain, where it is large; or else one of those of the system, or what is largest of all these.
  static func folder() -> String? {
    var largest: (path: String, count: Int)?
    for path in candidates() {
      guard let walk = try? FolderWalk(root: path) else { continue }
      let count = walk.prefix(enoughEntries).reduce(0) { count, _ in count + 1 }
      if count > largest?.count ?? 0 { largest = (path, count) }
      if count == enoughEntries { break }
    }
    return largest?.path
  }

  private static func candidates() -> [String] {
    var paths: [String] = []
    let searchPath = ProcessInfo.processInfo.environment["PATH"] ?? ""
    for folder in searchPath.split(separator: ":") {
      let swift = URL(filePath: String(folder), directoryHint: .isDirectory).appending(path: "swift")
      guard FileManager.default.isExecutableFile(atPath: swift.path) else { continue }
      // …/usr/bin/swift, once links are resolved
      paths.append(swift.resolvingSymlinksInPath().deletingLastPathComponent().deletingLastPathComponent().path)
      break
    }
    #if canImport(Darwin)
    // The swift on the PATH only stands in for that of the selected tools.
    paths.insert("/Library/Developer/CommandLineTools/usr", at: 0)
    #endif
    return paths + ["/usr/share", "/usr/lib", "/usr"]
  }

  /// Where the catalogue of a folder is kept: in the user's folder for caches, in a place that mirrors the folder's path.
  static func storeURL(forFolder folder: String) throws -> String {
    let caches = try FileManager.default.url(
      for: .cachesDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
    let place = caches.appending(path: "larder/FileCatalog" + folder, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    // With the name of the store behind it, since the folder's own path may have a number sign.
    return "lmdb:\(place.appending(path: "catalog.lmdb").path)#records"
  }
}
