/// The names of the measured blocks in the meter.
enum MeasuredBlock {
  static let firstPage = "first page"
  static let nextPage = "next page"
  static let details = "details"
}
