import LarderSQLite

extension CodingUserInfoKey {
  static var author: CodingUserInfoKey { standIn() }
}
