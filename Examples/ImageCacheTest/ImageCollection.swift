import Foundation

/// Images to store: PNG files that are on the machine, and drawn ones where there are too few.
struct ImageCollection {
  /// Larger files are left out: a cache of images holds what is shown in lists.
  private static let largestFile = 1 << 20

  /// Different images, those from files first.
  private(set) var images: [Image] = []

  /// How many are from files.
  private(set) var fileCount = 0

  /// Collects images.
  ///
  /// - Parameters:
  ///   - count: How many.
  ///   - folder: Where to look for PNG files, in the folders below it too.
  init(count: Int, folder: String) {
    var known: Set<Image> = []
    for path in Self.paths(below: folder) {
      guard images.count < count else { break }
      // A file may have gone, or be one that only its owner may read: then there are others.
      guard
        let data = FileManager.default.contents(atPath: path), data.count <= Self.largestFile,
        let image = Image(bytes: Array(data)), known.insert(image).inserted
      else { continue }
      images.append(image)
    }
    fileCount = images.count
    var number = 0
    while images.count < count {
      guard let image = Image(bytes: ImageDrawing.bytes(ofImage: number)) else { continue }
      number += 1
      images.append(image)
    }
  }

  /// The paths of PNG files below a folder.
  private static func paths(below folder: String) -> some Sequence<String> {
    let names = FileManager.default.enumerator(atPath: folder).map { AnySequence($0.lazy.compactMap { $0 as? String }) }
    return (names ?? AnySequence([])).lazy.filter { $0.hasSuffix(".png") }.map { "\(folder)/\($0)" }
  }
}
