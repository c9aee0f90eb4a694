import ExampleSupport

/// The results of all stores in one round.
struct Report: Encodable {
  /// The kind of round.
  let round: Round

  /// The number of images.
  let imageCount: Int

  /// The total size of the images, in bytes.
  ///
  /// An image that is stored several times counts each time.
  let byteCount: Int

  /// The results of the stores.
  var results: [CacheTestResult] = []

  /// Creates a report without results.
  init(round: Round, images: [Image]) {
    self.round = round
    imageCount = images.count
    byteCount = images.reduce(0) { $0 + $1.bytes.count }
  }
}

extension Report: CustomStringConvertible {
  /// The report as text, with a title and a row for each store.
  var description: String {
    var table = TextTable(alignments: [.left] + Array(repeating: .right, count: Step.allCases.count + 2))
    table.append([""] + Step.allCases.map(\.title) + ["items", "live after expiry"])
    for result in results {
      let times = Step.allCases.map { result.durations[$0].map(TextFormat.duration) ?? "" }
      table.append(
        [result.store] + times + [TextFormat.count(result.storedCount), TextFormat.count(result.liveCount)])
    }
    let count = TextFormat.count(imageCount)
    let title =
      switch round {
      case .oneImage: "One image \(count) times"
      case .differentImages: "\(count) different images"
      }
    return "\(title), \(TextFormat.bytes(Int64(byteCount)))\n\(table)"
  }
}
