import Larder

/// The start of a page of a feed.
enum PageStart: Hashable, Sendable {
  /// At the newest transaction.
  case beginning
  /// After the last transaction of the previous page.
  case after(PageCursor)
}
