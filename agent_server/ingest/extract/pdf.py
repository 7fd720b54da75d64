"""stub"""
from agent_server.models import Document, Rejected, SourceFile


def extract_pdf(file: SourceFile) -> Document | Rejected:
    """stub"""
    raise NotImplementedError
