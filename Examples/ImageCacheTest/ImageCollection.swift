import Foundation

/// Images to store: PNG files of the machine, and drawn images if there are too few.
struct ImageCollection {
  /// Larger files are omitted, because a cache of images holds thumbnails.
  private static let largestFile = 1 << 20

  /// Different images, those from files first.
  private(set) var images: [Image] = []

  /// The number of images from files.
  private(set) var fileCount = 0

  /// Collects images.
  ///
  /// - Parameters:
  ///   - count: The number of images.
  ///   - folder: The folder to search for PNG files, including its subfolders.
  init(count: Int, folder: String) {
    var known: Set<Image> = []
    for path in Self.paths(below: folder) {
      guard images.count < count else { break }
      // A file that was removed, or that only its owner can read, is skipped.
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

  /// Returns the paths of PNG files below a folder.
  private static func paths(below folder: String) -> some Sequence<String> {
    let names = FileManager.default.enumerator(atPath: folder).map { AnySequence($0.lazy.compactMap { $0 as? String }) }
    return (names ?? AnySequence([])).lazy.filter { $0.hasSuffix(".png") }.map { "\(folder)/\($0)" }
  }
}
