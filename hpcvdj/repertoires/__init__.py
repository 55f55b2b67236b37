"""Junctions to count: tables, of one or many repertoires, read and packed by V–J pair."""
