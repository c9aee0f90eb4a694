/// A choice of images to store.
enum Round: String, CaseIterable, Encodable {
  /// One image, the largest, under many keys.
  case oneImage
  /// A different image under each key.
  case differentImages

  /// Returns the images of the round, the same number as there are.
  func images(from images: [Image]) -> [Image] {
    switch self {
    case .oneImage:
      images.max { $0.bytes.count < $1.bytes.count }.map { Array(repeating: $0, count: images.count) } ?? []
    case .differentImages: images
    }
  }
}
