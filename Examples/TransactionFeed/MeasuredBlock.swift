/// What is measured, under the names that it has in the meter.
enum MeasuredBlock {
  static let firstPage = "first page"
  static let nextPage = "next page"
  static let details = "details"
}
