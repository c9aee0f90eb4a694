/// What is stored.
enum Round: String, CaseIterable, Encodable {
  /// One image, the largest, under many keys.
  case oneImage
  /// A different image under each key.
  case differentImages

  /// The images of the round, as many as there are.
  func images(from images: [Image]) -> [Image] {
    switch self {
    case .oneImage:
      images.max { $0.bytes.count < $1.bytes.count }.map { Array(repeating: $0, count: images.count) } ?? []
    case .differentImages: images
    }
  }
}
